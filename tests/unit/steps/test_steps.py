"""The smaller step bodies, with everything below them replaced by fakes."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

from mepof.errors import InputError
from mepof.plan.digest import file_digest
from mepof.plan.journal import JournalledRun, JournalledStep
from mepof.plan.model import HostInput, Input, Json, Step, StepInput
from mepof.spec.kernel_source import KernelSource
from mepof.steps import (
    BODIES,
    guest,
    kernel_source,
    kernel_tests,
    plugins,
    pmu,
    report,
)

from .room import FakeDevice, Room


def test_every_body_is_registered_under_its_kind() -> None:
    for name, body in BODIES.all().items():
        assert body.kind == name


# --- kernel-source


def test_a_source_step_copies_a_tree(room: Room) -> None:
    makefile = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 7\n"
    tree = room.directory("tree", Makefile=makefile, Kbuild="")
    context = room.context("kernel-source", {}, origin=tree)
    kernel_source.BODY.run(context)
    assert (context.output / "Makefile").read_text() == makefile
    step = KernelSource[Input](origin=HostInput(str(tree))).step("source")
    assert kernel_source.BODY.identity(step) == {}
    shared = room.directory("shared", Kconfig="")
    (tree / "techpack").symlink_to(shared)
    assert list(kernel_source.BODY.identity(step)) == ["files outside of the tree"]


@pytest.mark.parametrize("fragment", ["", "#sha256={}"])
def test_a_tarball_by_its_url_of_this_machine_is_unpacked(room: Room, fragment: str) -> None:
    tree = room.directory(
        "linux", Kbuild="", Makefile="VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\n"
    )
    (tree / "kernel").mkdir()
    packed = room.root / "linux.tar"
    subprocess.run(["tar", "-cf", packed, "-C", room.root, "linux"], check=True)
    address = f"file://{packed}{fragment.format(file_digest(packed))}"
    context = room.context("kernel-source", {"address": address}, origin=packed)
    kernel_source.BODY.run(context)
    assert (context.output / "kernel").is_dir()


def test_a_url_without_a_checksum_is_refused_before_anything_is_built() -> None:
    step = KernelSource[Input](address="https://example.org/l.tar").step("source")
    with pytest.raises(InputError, match="does not say how the download is verified"):
        kernel_source.BODY.check(step)


@pytest.mark.parametrize("content", [b"", b"VERSION = 6\n", b"\x7fELF"])
def test_a_file_that_is_not_a_tarball_is_refused_before_anything_is_built(
    room: Room, content: bytes
) -> None:
    given = room.root / "source"
    given.write_bytes(content)
    step = KernelSource[Input](origin=HostInput(str(given))).step("source")
    with pytest.raises(InputError, match="neither a kernel source tree nor a tarball"):
        kernel_source.BODY.check(step)
    given.write_bytes(b"\xfd7zXZ\0...")
    kernel_source.BODY.check(step)


# --- kernel-tests


def test_tests_run_on_several_cpus(room: Room, device: FakeDevice) -> None:
    params: dict[str, Json] = {
        "arch": "x86-64",
        "device": "qemu",
        "seed": 1,
        "gate": "kunit",
        "boots": 1,
        "cpus": 4,
    }
    given = {"kernel": room.directory("kernel", kernel="image"), "guest": room.root}
    kernel_tests.BODY.run(room.context("kernel-tests", params, **given))
    assert device.sessions[0].cpus == 4
    device.most_cpus = 2
    inputs: dict[str, Input] = {"kernel": StepInput("build"), "guest": StepInput("guest")}
    with pytest.raises(InputError, match="with at most 2 CPUs, not 4"):
        kernel_tests.BODY.check(Step("t", "kernel-tests", params, inputs))


# --- pmu


def test_plugins_are_not_part_of_the_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (plugins, pmu):
        monkeypatch.setattr(module, "native_digest", lambda *patterns: "another")
        assert module.BODY.identity(Step("made", "made"))["native"] == "another"
    sources = {path.split("/")[0] for path in guest._SOURCES}
    assert sources.isdisjoint({"pmu", "tcg-plugin"})


# --- report


def journalled(phase: str, started: str, ended: str, state: str = "done") -> JournalledStep:
    return SimpleNamespace(  # type: ignore[return-value]
        phase=phase,
        state=state,
        started=f"2026-01-01T00:00:{started}+00:00",
        ended=f"2026-01-01T00:00:{ended}+00:00",
    )


def share(*steps: JournalledStep) -> float | None:
    run = SimpleNamespace(
        started="2026-01-01T00:00:00+00:00",
        steps={str(number): step for number, step in enumerate(steps)},
    )
    whole: JournalledRun = run  # type: ignore[assignment]
    return report.engine_share(whole)


def test_the_engine_share_is_the_time_in_which_no_step_worked() -> None:
    assert share(journalled("build", "00", "10")) == 0
    assert share(journalled("build", "05", "10")) == 50
    # Parallel time counts once, and a step during another does not count.
    assert (
        share(
            journalled("build", "00", "06"),
            journalled("run", "04", "08"),
            journalled("run", "01", "02"),
        )
        == 0
    )
    assert share(journalled("build", "00", "09"), journalled("other", "09", "10")) == 10


def test_a_run_that_made_nothing_has_no_engine_share() -> None:
    assert share(journalled("build", "00", "10", state="cached")) is None
    assert share() is None
