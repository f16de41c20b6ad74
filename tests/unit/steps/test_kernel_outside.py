"""``kernel-build``: what a kernel is made of outside of the tree."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mepof.arch import Arch
from mepof.errors import WorkError
from mepof.events import StepNote
from mepof.kernel import kbuild
from mepof.kernel.build_spec import BuildPaths
from mepof.plan.model import HostInput, Input, Json, Step, StepInput
from mepof.process import look_again
from mepof.steps import kernel_build
from mepof.toolchain.versions import Versioned

from .room import Room

PARAMS: dict[str, Json] = {
    **{"arch": "x86-64", "config": ["slim", None], "toolchain": "clang", "options": []},
    "uses": [],
}


@dataclass
class Build:
    """A build with a certificate of the user's.

    Attributes:
        config: the lines that the finished kernel has.
        changes: what the certificate becomes while the kernel is built.
    """

    room: Room
    key: Path
    config: str = ""
    changes: str | None = None

    @property
    def own(self) -> Path:
        return self.room.root / "my.config"

    def identity(self) -> dict[str, str]:
        named = PARAMS["config"]
        assert isinstance(named, list)
        own = f"config.{len(named) - 1}"
        inputs: dict[str, Input] = {
            "source": StepInput("source"),
            own: HostInput(str(self.own)),
        }
        return dict(kernel_build.BODY.identity(Step("x/build", "kernel-build", PARAMS, inputs)))

    def run(self) -> list[str]:
        """Its notes."""
        tools = self.identity()
        inputs = {"source": self.room.root, "config__1": self.own}
        context = self.room.context("kernel-build", PARAMS, **inputs)
        kernel_build.BODY.run(replace(context, tools=tools))
        return [event.text for event in self.room.events if isinstance(event, StepNote)]

    def make(self, spec: object, tools: object, paths: BuildPaths, *rest: Any) -> None:
        (paths.output / "config").write_text(self.config or self.own.read_text())
        if self.changes is not None:
            self.key.write_text(self.changes)


@pytest.fixture
def build(room: Room, toolchain: None, monkeypatch: pytest.MonkeyPatch) -> Build:
    key = room.root / "ca.pem"
    key.write_text("one")
    made = Build(room, key)
    made.own.write_text(f'CONFIG_SYSTEM_TRUSTED_KEYS="{key}"\n')
    monkeypatch.setattr(kbuild, "build", made.make)
    monkeypatch.setattr(kbuild, "keep", lambda spec, toolchain, paths: None)
    return made


def test_what_compiles_for_another_machine_is_part_of_the_identity(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []

    def told(self: Versioned, arch: Arch | None = None) -> dict[str, str]:
        asked.append(None if arch is None else arch.name)
        return {}

    monkeypatch.setattr(Versioned, "identity", told)
    monkeypatch.setitem(PARAMS, "arch", "arm64")
    build.identity()
    assert asked == ["arm64"]


@pytest.mark.parametrize(
    ("lines", "held"),
    [
        ("CONFIG_DEBUG_INFO_BTF=y", True),
        ("CONFIG_NET=y", False),
        ("# base: defconfig", True),
        ("# base: defconfig\n# CONFIG_DEBUG_INFO_BTF is not set", False),
    ],
)
def test_what_writes_btf_is_part_of_the_identity_where_there_may_be_some(
    build: Build, monkeypatch: pytest.MonkeyPatch, lines: str, held: bool
) -> None:
    monkeypatch.setitem(PARAMS, "config", [None] if "base" in lines else ["slim", None])
    build.own.write_text(f"{lines}\n")
    which = shutil.which
    with monkeypatch.context() as bare:
        bare.setattr(
            "mepof.toolchain.programs.which",
            lambda name: None if name == "pahole" else which(name),
        )
        look_again()
        assert "pahole" not in build.identity()
    pahole = build.room.root / "pahole"
    pahole.write_text("#!/bin/sh\necho v1.30\n")
    pahole.chmod(0o755)
    monkeypatch.setenv("PATH", f"{pahole.parent}:/usr/bin:/bin")
    look_again()
    found = build.identity().get("pahole", "")
    assert found.startswith("v1.30, ") == held


@pytest.mark.parametrize(("built_for", "links"), [("um", True), ("x86-64", False)])
def test_a_linker_of_the_machine_is_part_of_the_identity_where_it_links(
    build: Build, monkeypatch: pytest.MonkeyPatch, built_for: str, links: bool
) -> None:
    monkeypatch.setitem(PARAMS, "arch", built_for)
    linker = build.room.root / "ld"
    linker.write_text("#!/bin/sh\necho GNU ld 2.99\n")
    linker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{linker.parent}:/usr/bin:/bin")
    look_again()
    assert build.identity().get("ld", "").startswith("GNU ld 2.99, ") == links


def test_a_certificate_is_part_of_the_identity(build: Build) -> None:
    before = build.identity()
    assert build.identity() == before
    build.key.write_text("two")
    after = build.identity()
    assert {name for name in after if after[name] != before[name]} == {"files of the config"}
    build.key.unlink()
    assert "files of the config" not in build.identity()


def test_a_certificate_that_changes_while_a_kernel_is_built_is_an_error(build: Build) -> None:
    assert build.run() == []
    build.changes = "two"
    with pytest.raises(WorkError, match=r"has changed since the run began: one of .*ca\.pem"):
        build.run()


def test_a_certificate_that_only_the_tree_names_is_noted(build: Build) -> None:
    build.config = build.own.read_text()
    build.own.write_text("CONFIG_NET=y\n")
    (note,) = build.run()
    assert "own configuration names" in note and "ca.pem, whose changes are not noticed" in note


def test_a_name_that_decides_what_a_configuration_lies_over_counts(build: Build) -> None:
    def base(name: str) -> str | None:
        own = build.own.rename(build.room.root / name)
        inputs: dict[str, Input] = {
            "source": StepInput("source"),
            "config.0": HostInput(str(own)),
        }
        step = Step("x/build", "kernel-build", PARAMS | {"config": [None]}, inputs)
        found = dict(kernel_build.BODY.identity(step)).get("base")
        own.rename(build.own)
        return found

    assert [base("my.config"), base("my_defconfig")] == [None, "alldefconfig"]
