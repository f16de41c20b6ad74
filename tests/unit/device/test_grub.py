"""GRUB's menu, on a machine that is made up."""

from __future__ import annotations

from pathlib import Path

import pytest
from writers.played_box import OLD, OPT, PLAIN, SAVED, Box, config

from mepof.device import grub
from mepof.device.shell import Ran
from mepof.errors import EnvironmentLack, InputError, WorkError


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_an_entry_is_named_by_the_ids_on_its_path(box: Box) -> None:
    menu = grub.Menu.of(box)
    assert menu.path_of(OPT) == f"gnulinux-advanced-5e>gnulinux-{OPT}-advanced-5e"
    # `Debian GNU/Linux` boots another kernel after the next `update-grub`.
    assert menu.path_of(OLD) == f"gnulinux-advanced-5e>gnulinux-{OLD}-advanced-5e"
    assert menu.parameters_of(OPT) == "root=UUID=5e ro  quiet panic=10"


def test_a_kernel_without_an_entry_is_named_with_those_that_have_one(box: Box) -> None:
    with pytest.raises(InputError, match=r"no kernel `6.13`") as error:
        grub.Menu.of(box).path_of("6.13")
    assert error.value.remedy == f"install it and run `update-grub`; it has {OLD}, {OPT}, {PLAIN}"


@pytest.mark.parametrize(
    ("default", "saved", "release"),
    [
        ("0", "", OLD),
        ("1", "", OPT),
        ("1>2", "", PLAIN),
        ("1>9", "", None),
        ("7", "", None),
        (f"gnulinux-advanced-5e>gnulinux-{PLAIN}-advanced-5e", "", PLAIN),
        (f"Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux {OPT}", "", OPT),
        (SAVED, "", OLD),
        (SAVED, f"gnulinux-advanced-5e>gnulinux-{OPT}-advanced-5e", OPT),
        (SAVED, "gone", None),
    ],
)
def test_the_default_is_found_as_grub_finds_it(
    box: Box, default: str, saved: str, release: str | None
) -> None:
    box.file("boot/grub/grub.cfg", config(default))
    box.environment["saved_entry"] = saved
    menu = grub.Menu.of(box)
    assert (menu.default, menu.saves) == (release, default == SAVED)


def test_an_entry_boots_once(box: Box) -> None:
    grub.boot_once(box, grub.Menu.of(box).path_of(OPT))
    assert grub.Menu.of(box).waits
    box.reset()
    assert (box.runs, grub.Menu.of(box).waits) == (OPT, False)
    box.reset()
    assert box.runs == OLD


def test_a_boot_that_was_asked_for_can_be_withdrawn(box: Box) -> None:
    grub.boot_once(box, grub.Menu.of(box).path_of(OPT))
    grub.forget(box)
    box.reset()
    assert box.runs == OLD


def test_a_machine_without_grub_is_one_clear_error(box: Box) -> None:
    (box.root / "boot/grub/grub.cfg").unlink()
    with pytest.raises(EnvironmentLack, match=r"box has no /boot/grub/grub\.cfg"):
        grub.Menu.of(box)


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (127, EnvironmentLack, "grub-reboot is not installed on box"),
        (1, WorkError, r"`grub-reboot x` failed on box: status 1.*see whether"),
    ],
)
def test_what_grub_refuses_is_one_clear_error(
    box: Box, monkeypatch: pytest.MonkeyPatch, status: int, kind: type[Exception], message: str
) -> None:
    monkeypatch.setattr(Box, "run", lambda self, argv, timeout: Ran(status, ""))
    with pytest.raises(kind, match=message):
        grub.boot_once(box, "x")


@pytest.mark.parametrize("text", ["", "}\n}\n", "menuentry 'x' {\n", 'set default="0"\nlinux\n'])
def test_a_menu_that_is_none_has_no_default(box: Box, text: str) -> None:
    box.file("boot/grub/grub.cfg", text)
    assert grub.Menu.of(box).default is None
