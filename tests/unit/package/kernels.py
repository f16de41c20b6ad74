"""A build that nobody compiled, and its package."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from mepof import arch
from mepof.kernel.installed import DEVICE_TREES, HEADERS
from mepof.package.deb import FORMAT
from mepof.package.protocol import Format, Kernel
from mepof.tar import member


def kernel(
    root: Path, version: str = "6.12.95", *, modules: bool = False, revision: int = 1
) -> Kernel:
    build = root / f"build-{version}"
    build.mkdir(parents=True, exist_ok=True)
    release = f"{version}-mepof-opt"
    (build / "kernel").write_bytes(b"image of " + release.encode())
    (build / "config").write_text("CONFIG_BLK_DEV_INITRD=y\n")
    (build / "System.map").write_text("ffffffff81000000 T _text\n")
    loaded = {}
    if modules:
        (build / "veth.ko").write_bytes(b"module")
        (build / "modules.builtin").write_text("kernel/fs/ext4/ext4.ko\n")
        (build / "modules.builtin.modinfo").write_bytes(b"ext4.alias=fs-ext4\0")
        loaded = {"drivers/net/veth.ko": build / "veth.ko"}
    return Kernel(release, version, arch.get("x86-64"), "clang 22", build, loaded, revision)


def archive(target: Path, files: Mapping[str, bytes], links: Mapping[str, str]) -> None:
    """Pack files, programs among them (``#!``), and links."""
    with tarfile.open(target, "w") as tar:
        for name, data in files.items():
            mode = 0o755 if data.startswith(b"#!") else 0o644
            tar.addfile(member(name, mode=mode, size=len(data)), io.BytesIO(data))
        for name, to in links.items():
            link = member(name)
            link.type, link.linkname = tarfile.SYMTYPE, to
            tar.addfile(link)


def with_headers(made: Kernel) -> Kernel:
    files = {"Makefile": b"all:\n", "scripts/mod/modpost": b"#!/bin/sh\n", "include/io.h": b"\n"}
    archive(made.build / HEADERS, files, {"include/link.h": "io.h"})
    return made


def check_headers(directory: Path) -> None:
    """What :func:`with_headers` has is installed in a directory, as it was."""
    assert (directory / "Makefile").read_text() == "all:\n"
    assert (directory / "include/link.h").resolve() == directory / "include/io.h"
    assert os.access(directory / "scripts/mod/modpost", os.X_OK)
    assert not os.access(directory / "Makefile", os.X_OK)


def with_device_trees(made: Kernel) -> Kernel:
    archive(made.build / DEVICE_TREES, {"acme/board.dtb": b"tree"}, {})
    return made


def package(root: Path, made: Kernel, form: Format = FORMAT) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    target = root / f"opt.{form.suffix}"
    form.write(made, None, target)
    return target


def put_shell(root: Path) -> None:
    """A shell, and what scripts of packages call, in a root of its own."""
    (root / "bin").mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin")
    for name in ("sh", "cp", "mkdir", "mv", "rm"):
        (root / "bin" / name).symlink_to("busybox")


def as_root(*words: str | Path) -> str:
    """What a program prints that only root may run: as root in a namespace of its own."""
    other = () if os.geteuid() == 0 else ("unshare", "--map-root-user")
    done = subprocess.run([*other, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
