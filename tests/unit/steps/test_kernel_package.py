"""The step that packages a kernel."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest
from writers.boot_image import arm64_kernel

from mepof.bootimg.compression import compress
from mepof.bootimg.directory import packed
from mepof.bootimg.image import write
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.events import StepNote
from mepof.kernel.installed import HEADERS
from mepof.kernel.modules import Module, Modules
from mepof.package.debian_archive import fields, read_control
from mepof.plan.body import StepContext
from mepof.plan.model import HostInput, Json, Step
from mepof.process import find_tool
from mepof.steps.kernel_package import BODY
from mepof.toolchain.named import select

from .room import Room

PARAMS: dict[str, Json] = {"format": "deb", "arch": "x86-64", "toolchain": "clang", "revision": 4}
BANNER = b"\0Linux version 6.12.95-mepof-opt (someone) #1\n\0"


def packaged(room: Room, build: Path) -> StepContext:
    return room.context(BODY.kind, PARAMS, kernel=build)


def test_a_kernel_is_packaged_under_the_release_that_it_states(room: Room, toolchain: None) -> None:
    build = room.directory(
        "build", kernel="image", config="CONFIG_BLK_DEV_INITRD=y\n", System_map="1 T _text\n"
    )
    (build / "vmlinux").write_bytes(BANNER)
    context = packaged(room, build)
    BODY.run(context)
    made = context.output / "package.deb"
    found = fields(read_control(made))
    assert found["Package"] == "linux-image-6.12.95-mepof-opt"
    assert found["Version"] == "6.12.95-4"
    shown = subprocess.run(["dpkg-deb", "--contents", made], check=True, capture_output=True)
    assert b"./boot/vmlinuz-6.12.95-mepof-opt" in shown.stdout


def test_headers_depend_on_what_compiled_the_kernel(room: Room, toolchain: None) -> None:
    build = room.directory("build", kernel="image", config="", System_map="1 T _text\n")
    (build / "vmlinux").write_bytes(BANNER)
    with tarfile.open(build / HEADERS, "w"):
        pass
    context = packaged(room, build)
    BODY.run(context)
    found = fields(read_control(context.output / "package.headers.deb"))
    assert found["Package"] == "linux-headers-6.12.95-mepof-opt"
    assert found["Depends"] == "libc6, libelf1, clang-22, lld-22, llvm-22"


def test_a_boot_image_says_where_the_modules_are(room: Room, toolchain: None) -> None:
    build = room.directory("build", kernel="image")
    (build / "vmlinux").write_bytes(BANNER)
    context = room.context(BODY.kind, {**PARAMS, "format": "bootimg"}, kernel=build)
    BODY.run(context)
    assert room.events == []
    module = Module(name="veth", path="drivers/net/veth.ko", needs=(), text=1)
    Modules(modules=(module,)).write(build)
    BODY.run(context)
    (note,) = room.events
    assert isinstance(note, StepNote)
    assert note.text == "the package has no modules: those of the kernel are in x.modules.tar"


@pytest.mark.parametrize(
    ("compression", "program"),
    [("lz4-legacy", "lz4"), ("lz4", "lz4"), ("zstd", "zstd"), ("xz", "")],
)
def test_what_compresses_as_the_given_image_is_looked_for_before_a_build(
    room: Room, toolchain: None, monkeypatch: pytest.MonkeyPatch, compression: str, program: str
) -> None:
    build = room.directory("build", kernel="image")
    given = build / "boot.img"
    (build / "packed").write_bytes(compress(arm64_kernel(), compression))
    (build / "bootimg.toml").write_text("header_version = 4\n[files]\nkernel = 'packed'\n")
    given.write_bytes(write(packed(build)))
    params: dict[str, Json] = {**PARAMS, "arch": "arm64", "format": "bootimg"}
    inputs = {"kernel": HostInput(str(build)), "given": HostInput(str(given))}
    step = Step("opt/package", BODY.kind, params, inputs)

    def without(name: str, remedy: str) -> str:
        if name == program:
            raise EnvironmentLack(f"{name} is not installed", remedy)
        return find_tool(name, remedy)

    found = BODY.identity(step)
    monkeypatch.setattr("mepof.steps.kernel_package.find_tool", without)
    if not program:
        assert BODY.identity(step) == found
        return
    assert found[program]
    with pytest.raises(EnvironmentLack) as told:
        BODY.identity(step)
    assert told.value.remedy == f"apt-get install {program}"


def test_a_kernel_that_states_no_release_is_refused(room: Room, toolchain: None) -> None:
    build = room.directory("build", vmlinux="nothing")
    with pytest.raises(WorkError, match="does not state its release"):
        BODY.run(packaged(room, build))


def test_an_architecture_that_debian_does_not_have_is_refused_before_a_build(room: Room) -> None:
    params: dict[str, Json] = {**PARAMS, "arch": "um"}
    step = Step("opt/package", BODY.kind, params, {"kernel": HostInput("/build")})
    with pytest.raises(InputError, match="no packages of kernels for um"):
        BODY.check(step)


def identity(format: str) -> set[str]:
    step = Step("opt/package", BODY.kind, {**PARAMS, "format": format}, {"kernel": HostInput("/b")})
    return set(BODY.identity(step))


def test_the_version_of_what_writes_a_package_decides_its_bytes(toolchain: None) -> None:
    ours = identity("deb")
    assert identity("bootimg") == ours
    assert identity("rpm") == ours | {"rpmbuild"}
    assert identity("pkg") == ours | {"zstd"}


def test_a_missing_program_is_said_before_a_build(
    tmp_path: Path, toolchain: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = select("clang")
    monkeypatch.setattr(type(known), "identity", lambda self: {})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLack, match="rpmbuild is not installed") as caught:
        identity("rpm")
    assert caught.value.remedy == "apt-get install rpm"
