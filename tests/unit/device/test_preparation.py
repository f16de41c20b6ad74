from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mepof.device.preparation import (
    Cores,
    Preparation,
    Setting,
    cores_of,
    cpu_numbers,
    load_preparation,
    preparation_names,
)
from mepof.device.shell import LocalShell, Ran, Refused
from mepof.errors import InputError

from .machine import Machine, tree

CPU = "sys/devices/system/cpu"


def files(root: Path, texts: Mapping[str, str]) -> LocalShell:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return LocalShell(root)


@pytest.mark.parametrize("kind", preparation_names())
def test_our_preparations_can_be_undone(kind: str) -> None:
    for wanted in load_preparation(kind).setting:
        # A value without a command of its own must be one that may stand.
        assert wanted.path or len(wanted.write) > 1


def test_phone_of_the_paper_is_prepared(tmp_path: Path) -> None:
    """Nexus 5X: four Cortex-A53 and two Cortex-A57, of which the driver took one away."""
    shell = files(
        tmp_path,
        {
            f"{CPU}/online": "0-5",
            f"{CPU}/cpu5/online": "0\n",
            "sys/module/msm_thermal/core_control/enabled": "1\n",
            **{
                f"{CPU}/cpu{n}/cpufreq/{name}": text
                for n in range(6)
                for name, text in (
                    ("scaling_governor", "interactive\n"),
                    ("scaling_min_freq", "384000\n"),
                    ("scaling_max_freq", "1248000\n"),
                    ("cpuinfo_max_freq", "1440000\n" if n < 4 else "1824000\n"),
                )
            },
        },
    )
    due = [one for wanted in load_preparation("android").setting for one in wanted.due(shell)]
    values = {one.setting.key: one.value for one in due}
    assert values["getprop init.svc.thermal-engine"] == "stopped"
    assert values["getprop init.svc.mpdecision"] == "stopped"
    assert values["/sys/module/msm_thermal/core_control/enabled"] == "0"
    assert values[f"/{CPU}/cpu5/online"] == "1"
    assert values[f"/{CPU}/cpu4/cpufreq/scaling_governor"] == "performance"
    assert values[f"/{CPU}/cpu0/cpufreq/scaling_min_freq"] == "1440000"
    assert values[f"/{CPU}/cpu4/cpufreq/scaling_min_freq"] == "1824000"
    assert values["settings get global airplane_mode_on"] == "1"
    assert cores_of(shell, "fastest") == Cores((4, 5))
    assert cores_of(shell, "slowest") == Cores((0, 1, 2, 3))


def test_cores_are_distinguished_by_capacity(tmp_path: Path) -> None:
    shell = tree(tmp_path)
    assert cores_of(shell, "fastest").numbers == (2, 3)
    assert cores_of(shell, "slowest").numbers == (0, 1)


def test_all_cores_of_one_kind_are_chosen(tmp_path: Path) -> None:
    assert cores_of(files(tmp_path, {f"{CPU}/online": "0-2,5\n"}), "fastest").numbers == (
        *(0, 1, 2),
        5,
    )


def test_machine_that_reports_no_cpus_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="does not report which CPUs"):
        cores_of(LocalShell(tmp_path), "fastest")


def test_program_runs_on_its_cores_alone() -> None:
    assert Cores((4, 5)).command(("x", "y")) == ("taskset", "30", "x", "y")


@pytest.mark.parametrize(
    ("text", "numbers"), [("0-3,6\n", (0, 1, 2, 3, 6)), ("0", (0,)), ("", ()), ("\n", ())]
)
def test_lists_of_cpus(text: str, numbers: tuple[int, ...]) -> None:
    assert cpu_numbers(text) == numbers


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("performance\n", "performance"),
        ("always [madvise] never\n", "madvise"),
        ("[always] madvise never\n", "always"),
        ("a[0]\n", "a[0]"),
        ("\n", ""),
    ],
)
def test_value_of_a_file_is_the_current_one(tmp_path: Path, text: str, value: str) -> None:
    shell = files(tmp_path, {"x": text})
    assert Setting("x", path="/x").get(shell) == value


@pytest.mark.parametrize(
    ("ran", "value"),
    [
        (Ran(0, "stopped\n"), "stopped"),
        (Ran(3, "inactive\n"), "inactive"),
        (Ran(0, "\n"), None),
        (Ran(127, "not found"), None),
        (Ran(1, "two\nlines\n"), None),
    ],
)
def test_value_that_a_command_prints(tmp_path: Path, ran: Ran, value: str | None) -> None:
    class Telling(Machine):
        def run(self, argv: object, timeout: float) -> Ran:
            return ran

    setting = Setting("x", read=("read",), write={"stopped": ("stop",)})
    assert setting.get(Telling(tmp_path)) == value
    # Where any value is taken, a complaint must not be one.
    any_value = Setting("x", read=("read",), write={"*": ("put", "{value}")})
    assert any_value.get(Telling(tmp_path)) == (value if ran.status == 0 else None)


FINE: dict[str, Any] = {"what": "x", "path": "/x", "value": "1"}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"path": ""}, "needs either a path, or commands"),
        ({"read": ["r"]}, "needs either a path, or commands"),
        ({"beside": "y"}, "needs either a value, or a file beside"),
        ({"value": ""}, "needs either a value, or a file beside"),
        ({"path": "", "read": ["r"], "write": {"0": ["w"]}}, "no command that sets `1`"),
        ({"governor": "x"}, "Extra inputs"),
    ],
)
def test_wrong_description_is_explained(
    tmp_path: Path, change: Mapping[str, Any], complaint: str
) -> None:
    described = {"title": "x", "source": "y", "setting": [{**FINE, **change}]}
    with pytest.raises(ValueError, match=complaint):
        Preparation.model_validate(described)


def test_kind_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('title = "mine"\nsource = "me"\nsetting = []\n')
    assert load_preparation(str(path)).title == "mine"
    path.write_text("title = 1\n")
    with pytest.raises(InputError, match=r"mine\.toml:1: `title` must be a string"):
        load_preparation(str(path))
    with pytest.raises(InputError, match="cannot read"):
        load_preparation(str(tmp_path / "absent.toml"))
    with pytest.raises(InputError, match=r"unknown kind of machine `phone`.*known: android"):
        load_preparation("phone")
