"""Whether a configuration takes in a tree, by its own Kconfig."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from writers.mini_kernel import SUFFIX, tools_alone, write_tree

from mepof import arch
from mepof.adapter.configured import configured
from mepof.adapter.fit import Fit, check_fit
from mepof.errors import EnvironmentLack, Interrupted, MepofError
from mepof.kernel import kbuild
from mepof.toolchain.named import select

from .conftest import Mepof

X86 = arch.get("x86-64")
Check = Callable[..., Fit]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    made = write_tree(tmp_path / "tree")
    (made / "scripts/kconfig").mkdir(parents=True, exist_ok=True)
    (made / "scripts/kconfig/Makefile").write_text("simple-targets := allnoconfig\n")
    with tools_alone(tmp_path / "tools", monkeypatch):
        yield made


@pytest.fixture
def check(tree: Path, tmp_path: Path) -> Check:
    def of(*lines: str, note_dropped: bool = False) -> Fit:
        own = tmp_path / "own.config"
        own.write_text("\n".join(["# base: allnoconfig", *lines, ""]))
        chosen, config = select(f"clang{SUFFIX}"), [str(own)]
        fit = check_fit(tree, X86, chosen, config, (), True, note_dropped)
        assert not fit.config
        return configured(fit, tree, X86, chosen, config, True, note_dropped)

    return of


def test_an_option_whose_dependency_is_not_met_does_not_fit(check: Check, tmp_path: Path) -> None:
    assert not check("CONFIG_NET=y", "CONFIG_INET=y").config
    (reason,) = check("CONFIG_INET=y").config
    own = tmp_path / "own.config"
    assert f"CONFIG_INET=y ({own}:2): unmet dependency NET" in reason.message
    assert reason.nearest is not None and "add the dependency" in reason.nearest


def test_one_that_need_not_take_is_a_note(check: Check) -> None:
    fit = check("CONFIG_INET=y", note_dropped=True)
    assert not fit.config
    assert any("unmet dependency NET" in note.message for note in fit.notes)


def test_what_make_says_is_the_reason_and_no_log_is_named_that_is_gone(
    check: Check, tree: Path
) -> None:
    makefile = tree / "Makefile"
    makefile.write_text(f"{makefile.read_text()}\n$(error flex is missing)\n")
    (reason,) = check("CONFIG_NET=y").config
    assert "flex is missing" in reason.message
    assert reason.nearest is None


@pytest.mark.parametrize("error", [Interrupted("ended by SIGTERM"), EnvironmentLack("no make")])
def test_what_is_no_fault_of_the_configuration_is_no_reason(
    check: Check, monkeypatch: pytest.MonkeyPatch, error: MepofError
) -> None:
    def fails(*given: object) -> None:
        raise error

    monkeypatch.setattr(kbuild, "configured", fails)
    with pytest.raises(type(error)):
        check("CONFIG_NET=y")


def test_the_tree_stays_as_it_is_and_what_a_build_left_in_it_is_not_seen(
    check: Check, tree: Path
) -> None:
    for name in (".config", "include/config/auto.conf"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("CONFIG_NET=y\n")
    makefile = tree / "Makefile"
    refused = "ifneq ($(wildcard .config include/config),)\n$(error the tree is not clean)\nendif\n"
    makefile.write_text(refused + makefile.read_text())
    before = {path: path.stat().st_mtime_ns for path in tree.rglob("*")}
    assert not check("CONFIG_NET=y").config
    assert {path: path.stat().st_mtime_ns for path in tree.rglob("*")} == before


def test_the_command_asks_kconfig(mepof: Mepof, tree: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.config"
    own.write_text("# base: allnoconfig\nCONFIG_INET=y\n")
    words = ("--config", own, "--toolchain", f"clang{SUFFIX}", "--algorithm", "autofdo")
    answer = mepof("adapt", "check", tree, *words)
    assert answer.status == 1
    assert "does not fit\n    1 config option(s) did not take effect: CONFIG_INET=y" in answer.out
    assert "add the dependency" in answer.out
