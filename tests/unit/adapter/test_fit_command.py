"""``mepof adapt check``: what it says of a tree, and its status."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from mepof.cli import adapt
from mepof.toolchain.clang import Clang

from .conftest import Mepof


@pytest.fixture
def present(monkeypatch: pytest.MonkeyPatch, toolchain: Clang) -> None:
    monkeypatch.setattr(adapt, "select", lambda name: toolchain)
    # The tree has what overlays edit, and no Kconfig that runs.
    monkeypatch.setattr(adapt, "configured", lambda fit, *_, **__: fit)


@pytest.mark.usefixtures("present")
def test_the_verdict_is_a_table_a_document_and_a_status(mepof: Mepof, tree: Path) -> None:
    answer = mepof("adapt", "check", tree)
    assert answer.status == 0
    assert f"Linux 6.12.7, {tree}" in answer.out
    assert "note" not in answer.out
    assert "clang-22 22.1.8; needed: 13.0.1 or later" in answer.out
    (tree / "tools/objtool/check.c").write_text("")
    assert mepof("adapt", "check", tree).status == 0
    told = mepof("adapt", "check", tree, "--algorithm", "pgo")
    assert told.status == 1
    assert "cannot be built with pgo" in told.err
    stack = mepof("adapt", "check", tree, "--algorithm", "autofdo+pgo", "--algorithm", "autofdo")
    assert stack.status == 1
    assert "cannot be built with pgo\n" in stack.err
    (tree / "techpack").symlink_to("../vendor")
    noted = mepof("adapt", "check", tree)
    assert noted.status == 0
    assert "note\n    the link techpack leads out of the tree to ../vendor, which" in noted.out
    document = json.loads(mepof("adapt", "check", tree, "--json").out)
    assert document["notes"][0]["message"].startswith("the link techpack leads out of the tree")
    assert document["schema"] == "mepof-adapt-check/1"
    assert "pgo" not in document["fits"] and "autofdo" in document["fits"]


@pytest.mark.usefixtures("present")
def test_a_configuration_may_be_files_of_the_users(mepof: Mepof, tree: Path) -> None:
    own, base = tree.with_name("own.config"), tree.with_name("base.config")
    own.write_text("CONFIG_NETT=y\n")
    base.write_text("# base: x86_64_defconfg\n")
    (tree / "arch/x86/configs").mkdir()
    (tree / "arch/x86/configs/x86_64_defconfig").touch()
    answer = mepof("adapt", "check", tree, "--config", f"slim+{own}")
    assert answer.status == 1
    assert f"the kernel has no CONFIG_NETT ({own}:1)" in answer.out
    told = mepof("adapt", "check", tree, "--config", f"{base}+slim").out
    assert f"{base}:1: the kernel has no configuration `x86_64_defconfg`" in told
    assert "the nearest is `x86_64_defconfig`" in told


@pytest.mark.usefixtures("present")
@pytest.mark.parametrize("line", ["", "# base: defconfig\n", "#base: defconfig\n"])
def test_a_tree_without_the_default_configuration_does_not_fit_what_lies_over_it(
    mepof: Mepof, tree: Path, line: str
) -> None:
    own = tree.with_name("own.config")
    own.write_text(f"{line}CONFIG_EPOLL=y\n")
    (tree / "scripts/kconfig/Makefile").write_text("defconfig: conf\n")
    (tree / "arch/x86/Makefile").write_text("KBUILD_DEFCONFIG := $(ARCH)_defconfig\n")
    told = mepof("adapt", "check", tree, "--config", own)
    assert told.status == 1
    assert "the kernel has no configuration `defconfig`: no arch/x86/configs/x86_64_" in told.out
    assert f"configuration   {own} for x86-64: does not fit\n" in told.out
    assert "does not fit: see above" in told.out
    (tree / "arch/x86/configs").mkdir()
    (tree / "arch/x86/configs/x86_64_defconfig").touch()
    assert mepof("adapt", "check", tree, "--config", own).status == 0


@pytest.mark.usefixtures("present")
@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["./none"], "./none does not exist"),
        (["https://example.org/l.tar"], "does not say how the download is verified"),
        (["debian:linux-image"], "is not a Debian kernel source package"),
        (["./linux.git"], "write git+file:///"),
        ([".", "--algorithm", "pgoo"], "unknown algorithm `pgoo`"),
        ([".", "--algorithm", "pgo+propellr"], "did you mean `propeller`?"),
        ([".", "--arch", "x86"], "unknown architecture `x86`"),
        ([".", "--config", "slim+"], "invalid config `slim+`"),
        (["."], "is not a kernel source tree"),
    ],
)
def test_wrong_input_is_refused(mepof: Mepof, words: list[str], what: str) -> None:
    subprocess.run(["git", "init", "--quiet", "--bare", "linux.git"], check=True)
    answer = mepof("adapt", "check", *words)
    assert (answer.status, answer.out) == (2, "")
    assert what in answer.err and "bug" not in answer.err
