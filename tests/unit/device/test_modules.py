"""Modules are loaded before the requests of a session, and known by their addresses."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from writers.elf import CODE, elf64
from writers.recorder_trace import sampled_trace

from mepof.arch import get
from mepof.device import agent, module_archive, modules, recorder_trace
from mepof.device.protocol import BootFailure, Outcome, Session
from mepof.errors import WorkError
from mepof.kernel.modules import Module, Modules
from mepof.process import run

LOADED = "loaded jbd2\nsection jbd2 .text 0xffffffffc0000000\nabsent efivarfs\nloaded ext4\n"
LOADED += "section ext4 .text.unlikely 0xffffffffc0020000\nsection ext4 .text 0xffffffffc0010000\n"
WORK = agent.Exec(("/bin/kbench",), 1)


def build_of(root: Path) -> Path:
    """A build with three modules."""
    build = root / "build"
    (build / "modules").mkdir(parents=True)
    listed = []
    for name in ("jbd2", "efivarfs", "ext4"):
        sections = [(".text", 0, 0x100, CODE), (".text.unlikely", 0, 0x30, CODE)]
        (build / f"modules/{name}.ko").write_bytes(elf64(sections, {}))
        needs = ("jbd2",) if name == "ext4" else ()
        listed.append(Module(name=name, path=f"fs/{name}/{name}.ko", needs=needs, text=0x130))
    Modules(modules=tuple(listed)).write(build)
    (build / module_archive.ARCHIVE).write_bytes(b"modules")
    return build


def session_of(build: Path) -> Session:
    return Session("x86-64", build / "kernel", build / "initramfs", (WORK,), 1)


class Device:
    """Answers the loader, and then everything else well."""

    def __init__(self, said: str, status: int = 0, trace: Path | None = None) -> None:
        self.said, self.status, self.trace = said, status, trace
        self.session: Session | None = None

    def boot(
        self, session: Session, directory: Path, runner: object, replied: Callable[[int], None]
    ) -> Outcome:
        self.session = session
        for count in range(len(session.requests) + 1):
            replied(count)
        replies = [agent.ExecResult(0, 1, b"", False) for _ in session.requests]
        if session.archives:
            replies[0] = replace(replies[0], status=self.status, output=self.said.encode())
        return Outcome("6.12.7", tuple(replies), (), "", self.trace)


def boot(device: Device, build: Path, counts: list[int] | None = None) -> Outcome:
    seen = [] if counts is None else counts
    session = session_of(build)
    return modules.boot(device, session, build, build, run, seen.append)  # type: ignore[arg-type]


def test_modules_are_loaded_before_the_requests_and_do_not_appear_in_the_replies(
    tmp_path: Path,
) -> None:
    device, counts = Device(LOADED), list[int]()
    build = build_of(tmp_path)
    outcome = boot(device, build, counts)
    assert device.session is not None
    assert device.session.archives == (build / module_archive.ARCHIVE,)
    load, work = device.session.requests
    assert isinstance(load, agent.Exec) and load.argv == (
        "/mepof/modules/load",
        "/mepof/modules/list",
    )
    assert work == WORK
    assert len(outcome.replies) == 1
    assert counts == [0, 0, 1]


@pytest.mark.parametrize(("answered", "of_the_session"), [(None, None), (0, None), (1, 0), (2, 1)])
def test_of_a_kernel_that_goes_down_the_replies_are_those_to_the_requests(
    tmp_path: Path, answered: int | None, of_the_session: int | None
) -> None:
    class Failing(Device):
        def boot(self, *given: object) -> Outcome:
            error = BootFailure("it panicked")
            if answered is not None:
                error.replies = (agent.ExecResult(0, 1, b"", False),) * answered
            raise error

    with pytest.raises(BootFailure) as raised:
        boot(Failing(""), build_of(tmp_path))
    replies = raised.value.replies
    assert (None if replies is None else len(replies)) == of_the_session


def test_a_build_without_modules_and_an_image_alone_boot_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"image")
    for build in (tmp_path, tmp_path / "image"):
        device = Device("")
        boot(device, build)
        assert device.session == session_of(build)


def test_a_device_is_told_the_configuration_of_a_build(tmp_path: Path) -> None:
    device, build = Device(LOADED), build_of(tmp_path)
    (build / "config").write_text("CONFIG_VIRTIO_PCI=y\n")
    boot(device, build)
    assert device.session is not None
    assert device.session.config == "CONFIG_VIRTIO_PCI=y\n"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            "loaded jbd2\next4: Exec format error: ext4: version magic '6.12.1 SMP ' should be "
            "'6.12.7 SMP '\n",
            "ext4: Exec format error: ext4: version magic '6.12.1 SMP ' should be '6.12.7 SMP '",
        ),
        ("", "the program that loads modules did not run"),
    ],
)
def test_a_module_that_does_not_load_is_an_error_with_the_kernels_reason(
    tmp_path: Path, said: str, why: str
) -> None:
    with pytest.raises(modules.ModuleNotLoaded) as raised:
        boot(Device(said, 1), build_of(tmp_path))
    assert raised.value.message == f"a module did not load in the guest: {why}"
    assert raised.value.remedy


def records(trace: Path) -> list[tuple[int, bytes]]:
    data, at, found = trace.read_bytes(), 128, []
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        found.append((kind, data[at + 8 : at + 8 + size]))
        at += 8 + size
    return found


def test_a_branch_trace_says_where_the_modules_were(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_bytes(sampled_trace([[(1, 2)], [(3, 4)]], 100, 16))
    boot(Device(LOADED, trace=trace), build_of(tmp_path))
    found = records(trace)
    assert [kind for kind, _ in found] == [3, 3, 5, 5, 5, 255]
    assert struct.unpack("<Q", found[-1][1]) == (5,)
    text = (0xFFFFFFFFC0010000, 0x100, 0)
    assert struct.unpack_from("<QQQ", found[3][1]) == text
    assert found[3][1][24:].rstrip(b"\0").split(b"\0") == [b"[ext4]", b".text"]
    assert all(len(body) % 8 == 0 for _, body in found)
    assert recorder_trace.modules_in(trace) == {"jbd2", "ext4"}


def test_only_a_recorders_trace_takes_mappings(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(b"PERFILE2" + bytes(300))
    assert recorder_trace.modules_in(path) == frozenset()
    with pytest.raises(WorkError, match="does not end with the number of its records"):
        recorder_trace.add_mappings(path, ())
    path.write_bytes(b"MEPOFTRC")
    with pytest.raises(WorkError, match="too short"):
        recorder_trace.add_mappings(path, ())


def archive_of(build: Path, tmp_path: Path, chosen: frozenset[str] | None = None) -> bytes:
    """The archive that a build gets."""
    target = get("x86-64").guest
    assert target is not None

    def tools(argv: list[object]) -> None:
        words = [str(word) for word in argv]
        if words[0] == "make":
            (tmp_path / "modules/load").write_bytes(b"program")
        else:
            assert words[:2] == ["objcopy", "--strip-debug"]
            Path(words[3]).write_bytes(b"stripped " + Path(words[2]).name.encode())

    module_archive.write_archive(build, target, "objcopy", tmp_path, tools, chosen)  # type: ignore[arg-type]
    assert module_archive.archive_of(build) == build / module_archive.ARCHIVE
    return (build / module_archive.ARCHIVE).read_bytes()


def test_a_build_gets_an_archive_of_its_stripped_modules_in_order(tmp_path: Path) -> None:
    data = archive_of(build_of(tmp_path), tmp_path)
    assert data.startswith(b"070701")
    assert b"jbd2\nefivarfs\next4 jbd2\n" in data and b"stripped ext4.ko" in data
    assert b"mepof/modules/port" not in data


def test_an_archive_has_the_chosen_modules_and_what_they_need(tmp_path: Path) -> None:
    build = build_of(tmp_path)
    data = archive_of(build, tmp_path, frozenset({"ext4", "unknown"}))
    assert b"jbd2\next4 jbd2\n" in data
    assert b"stripped ext4.ko" in data and b"efivarfs" not in data
    # Nothing is loaded, which the loader does as well.
    assert b"mepof/modules/list" in archive_of(build, tmp_path, frozenset({"unknown"}))


def test_the_drivers_of_the_agents_port_are_listed_with_all_that_they_need(tmp_path: Path) -> None:
    build = build_of(tmp_path)
    needs = {
        "virtio": (),
        "virtio_ring": ("virtio",),
        "ext4": (),
        "virtio_pci": ("virtio_ring",),
        "virtio_console": ("virtio",),
        "virtio_blk": ("virtio",),
    }
    for name in needs:
        (build / f"modules/{name}.ko").touch()
    listed = (Module(name=n, path=f"{n}.ko", needs=m, text=1) for n, m in needs.items())
    Modules(modules=tuple(listed)).write(build)
    data = archive_of(build, tmp_path)
    port = b"virtio\nvirtio_ring virtio\nvirtio_pci virtio_ring\nvirtio_console virtio\n"
    assert b"mepof/modules/port" in data and port in data
