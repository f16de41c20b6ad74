"""Builds with a profile are booted as a check, and mended if they fail."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from writers.mini_kernel import SUFFIX, write_tree

from mepof.device import agent
from mepof.device.protocol import KernelPanic, Outcome, Session
from mepof.errors import WorkError
from mepof.events import StepNote
from mepof.kernel import rewriting
from mepof.kernel.description import BuildDescription
from mepof.plan.body import StepContext
from mepof.plan.model import Json
from mepof.steps import kernel_build

from .room import FakeDevice, Room
from .test_kernel_build import BASE, profile_of_a_rewriting


@dataclass
class Kernels:
    """Builds of the miniature kernel with a profile, and a device that may fail with them.

    ``fails`` gets what is left out of the profile of each object, ``["%"]`` for all of it, and
    gives the failure of the boot.
    """

    room: Room
    device: FakeDevice
    fails: Callable[[Mapping[str, Sequence[str]]], Exception | None] = lambda left_out: None
    boots: list[dict[str, list[str]]] = field(default_factory=list)

    def context(self) -> StepContext:
        root = self.room.root
        tree, profile, config = root / "tree", root / "my.profdata", root / "mini.config"
        if not tree.exists():
            write_tree(tree)
            profile.write_text("profile")
            config.write_text("# base: allnoconfig\n")
        params: dict[str, Json] = {
            **BASE,
            "config": [None],
            "toolchain": f"clang{SUFFIX}",
            "uses": ["pgo"],
            "boot": {"device": "qemu", "seed": 7},
        }
        inputs = {"source": tree, "profile": profile, "config__0": config, "boot__guest": root}
        return self.room.context("kernel-build", params, **inputs)

    def boot(self, session: Session, directory: Path, *rest: Any) -> Outcome:
        """Tell from the commands in the image what does without the profile."""
        objects = directory.parent / "tree/build"
        left_out = {}
        image = session.kernel.read_text(errors="replace")
        for flags, source in re.findall(r"(-fdebug-compilation-dir.*) (\S+)\.c$", image, re.M):
            used = re.findall(r"-fprofile-use=(\S+)", flags)
            if not used or "-fno-profile-use" in flags.split():
                left_out[f"{source}.o"] = ["%"]
            elif "spared" in used[-1]:
                (names,) = re.findall(r"\)\?\((.*)\)\$", (objects / used[-1]).read_text())
                left_out[f"{source}.o"] = [name for name in names.split("|") if name]
            else:
                left_out[f"{source}.o"] = []
        self.boots.append(left_out)
        self.device.error = self.fails(left_out)
        return FakeDevice.boot(self.device, session, directory, *rest)

    def build(self) -> dict[str, Any]:
        """What ``safety.json`` says of the build."""
        self.boots.clear()
        context = self.context()
        kernel_build.BODY.run(context)
        found: dict[str, Any] = json.loads((context.output / "safety.json").read_text())
        return found

    def notes(self) -> list[str]:
        return [event.text for event in self.room.events if isinstance(event, StepNote)]


@pytest.fixture
def kernels(
    room: Room, device: FakeDevice, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> Kernels:
    made = Kernels(room, device)
    monkeypatch.setattr(device, "boot", made.boot)
    return made


def test_a_kernel_that_boots_with_its_profile_uses_it_everywhere(kernels: Kernels) -> None:
    assert kernels.build() == {
        "booted": True,
        "self_check": "passed",
        "release": "6.12.7",
        "opt_out": {"files": [], "functions": {}},
        "failure": None,
        "objtool": [],
    }
    (left_out,) = kernels.boots
    assert left_out["init/a.o"] == left_out["kernel/b.o"] == []
    (session,) = kernels.device.sessions
    assert session.seed == 7
    assert session.kernel.name == "kernel"
    assert all(isinstance(request, agent.Exec) for request in session.requests)


def test_an_object_that_breaks_the_boot_is_built_without_the_profile(
    kernels: Kernels,
) -> None:
    # It fails with the profile, whatever is left out of it.
    kernels.fails = lambda left_out: (
        None if left_out["kernel/b.o"] == ["%"] else KernelPanic("the kernel went down")
    )
    safety = kernels.build()
    assert safety["opt_out"] == {"files": ["kernel/b.o"], "functions": {}}
    assert safety["failure"] == "the kernel went down"
    assert safety["booted"] is True
    # The kernel in the artifact is the one that booted.
    assert kernels.boots[-1]["kernel/b.o"] == ["%"]
    assert kernels.boots[-1]["init/a.o"] == []
    assert kernels.notes()[-2] == "left out of the profile: kernel/b.o"


def test_only_the_function_that_breaks_the_boot_is_left_out_of_the_profile(
    kernels: Kernels,
) -> None:
    kernels.fails = lambda left_out: (
        None
        if {"stop", "%"}.intersection(left_out["init/a.o"])
        else KernelPanic("the kernel went down")
    )
    safety = kernels.build()
    assert safety["opt_out"] == {"files": [], "functions": {"init/a.o": ["stop"]}}
    assert kernels.boots[-1]["init/a.o"] == ["stop"]
    assert kernels.boots[-1]["kernel/b.o"] == []
    assert kernels.notes()[-2] == "left out of the profile: stop() in init/a.o"


def test_a_panic_that_names_a_function_avoids_the_search(kernels: Kernels) -> None:
    def fails(said: str) -> Callable[[Mapping[str, Sequence[str]]], Exception | None]:
        return lambda left_out: KernelPanic(said) if not left_out["init/a.o"] else None

    kernels.fails = fails("the kernel went down")
    assert kernels.build()["opt_out"]["functions"]
    searched = len(kernels.boots)
    kernels.fails = fails("the kernel went down\n  | RIP: 0010:stop.cold+0x5/0x9")
    assert kernels.build()["opt_out"]["functions"]
    assert len(kernels.boots) < searched


def test_a_guest_that_fails_its_self_check_is_a_failure_too(kernels: Kernels) -> None:
    def answer(request: agent.Request) -> agent.Reply:
        bad = kernels.boots[-1]["kernel/b.o"] == []
        return agent.ExecResult(1 if bad else 0, 1, b"sum is wrong" if bad else b"fine", False)

    kernels.device.answer = answer
    safety = kernels.build()
    assert "sum is wrong" in safety["failure"]
    assert list(safety["opt_out"]["functions"]) == ["kernel/b.o"]


def test_a_kernel_that_does_not_boot_without_the_profile_either_fails_with_its_first_error(
    kernels: Kernels,
) -> None:
    kernels.fails = lambda left_out: KernelPanic(
        "without" if left_out["kernel/b.o"] else "the first"
    )
    with pytest.raises(WorkError, match=r"^the first"):
        kernels.build()
    assert len(kernels.boots) == 2


def test_a_function_that_objtool_warns_about_is_left_out_of_the_profile(kernels: Kernels) -> None:
    kernels.context()
    source = kernels.room.root / "tree/init/a.c"
    source.write_text(source.read_text() + "// OBJTOOL: stop\n")
    safety = kernels.build()
    assert safety["opt_out"] == {"files": [], "functions": {"init/a.o": ["stop"]}}
    assert safety["failure"] == "objtool warns about init/a.o: stop: unreachable instruction"
    assert safety["objtool"] == []
    # It was not booted before objtool was clean, and there was no search for a function.
    assert len(kernels.boots) <= 5
    assert kernels.boots[-1]["init/a.o"] == ["stop"]


def test_warnings_of_objtool_that_also_occur_without_the_profile_are_accepted(
    kernels: Kernels,
) -> None:
    kernels.context()
    (kernels.room.root / "tree/kernel/b.c").write_text(
        "void work(void) {}\n// OBJTOOL ALWAYS: work\n"
    )
    safety = kernels.build()
    assert safety["opt_out"] == {"files": [], "functions": {}}
    assert safety["failure"] is None
    assert safety["objtool"] == ["kernel/b.o: work: unreachable instruction"]
    assert "the same warnings without the profile" in kernels.notes()[-2]


def test_warnings_of_objtool_are_shown_without_a_profile(kernels: Kernels) -> None:
    kernels.context()
    (kernels.room.root / "tree/kernel/b.c").write_text(
        "void work(void) {}\n// OBJTOOL ALWAYS: work\n"
    )
    context = kernels.context()
    plain = {k: v for k, v in context.step.params.items() if k not in ("boot", "uses")}
    inputs = {k.replace(".", "__"): v for k, v in context.inputs.items()}
    inputs = {k: v for k, v in inputs.items() if k in ("source", "config__0")}
    kernel_build.BODY.run(kernels.room.context("kernel-build", plain, **inputs))
    assert kernels.notes() == ["objtool warns about kernel/b.o: work: unreachable instruction"]


def test_a_source_that_does_not_compile_at_all_is_reported_as_such(kernels: Kernels) -> None:
    kernels.context()
    (kernels.room.root / "tree/kernel/b.c").write_text("BROKEN\n")
    with pytest.raises(WorkError, match=r"kernel/b\.c:3:5: error: use of undeclared"):
        kernels.build()
    assert kernels.boots == []


# --- builds that are rewritten


def with_params(
    context: StepContext,
    params: Mapping[str, Json],
    without: Sequence[str] = (),
    **inputs: Path,
) -> StepContext:
    asked = {**context.step.params, **params}
    given = {**context.inputs, **inputs}
    step = replace(context.step, params={k: v for k, v in asked.items() if k not in without})
    kept = {k: v for k, v in given.items() if k.partition(".")[0] not in without}
    return replace(context, step=step, inputs=kept)


def test_only_the_function_that_breaks_the_boot_is_left_alone(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []

    def rewrite(
        program: str, vmlinux: Path, counts: Path, names: frozenset[str], new: Path, *rest: Any
    ) -> rewriting.Rewritten:
        new.write_bytes(vmlinux.read_bytes() + f"\nmoved: {' '.join(sorted(names))}\n".encode())
        return rewriting.Rewritten(functions=len(names), alone=0)

    def boot(session: Session, directory: Path, *rest: Any) -> Outcome:
        image = session.kernel.read_text(errors="replace")
        moved = re.findall(r"^moved: (.*)$", image, re.M)
        compiled.append(re.sub(r"\nmoved: .*\n", "", image))
        kernels.boots.append({"moved": moved[0].split() if moved else []})
        broken = "stop" in kernels.boots[-1]["moved"]
        kernels.device.error = KernelPanic("the kernel went down") if broken else None
        return FakeDevice.boot(kernels.device, session, directory, *rest)

    monkeypatch.setattr(rewriting, "rewrite", rewrite)
    monkeypatch.setattr(kernels.device, "boot", boot)
    monkeypatch.setattr(rewriting, "check_kernel", lambda vmlinux: None)
    plain = kernels.context()
    profiled: dict[str, Json] = {"uses": [], "instrumented": {"algorithm": "bolt"}}
    kernel_build.BODY.run(with_params(plain, profiled, without=("boot", "profile")))
    given = profile_of_a_rewriting(kernels.room, BuildDescription.read(plain.output).origin)
    context = with_params(plain, {"uses": ["bolt"]}, profile=given)
    kernel_build.BODY.run(context)
    assert kernels.boots[0] == {"moved": ["start", "stop", "work"]}
    assert kernels.boots[-1] == {"moved": ["start", "work"]}
    safety = json.loads((context.output / "safety.json").read_text())
    assert safety["opt_out"] == {"files": [], "functions": {"init/a.o": ["stop"]}}
    assert len(set(compiled)) == 1
