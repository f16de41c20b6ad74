"""A build that nobody compiled, and its package."""

from __future__ import annotations

from pathlib import Path

from mepof import arch
from mepof.package.deb import FORMAT
from mepof.package.protocol import Kernel


def kernel(root: Path, version: str = "6.12.95", *, modules: bool = False, **given: int) -> Kernel:
    build = root / f"build-{version}"
    build.mkdir(parents=True, exist_ok=True)
    release = f"{version}-mepof-opt"
    (build / "kernel").write_bytes(b"image of " + release.encode())
    (build / "config").write_text("CONFIG_BLK_DEV_INITRD=y\n")
    (build / "System.map").write_text("ffffffff81000000 T _text\n")
    loaded = {}
    if modules:
        (build / "veth.ko").write_bytes(b"module")
        loaded = {"drivers/net/veth.ko": build / "veth.ko"}
    return Kernel(release, version, arch.get("x86-64"), "clang 22", build, loaded, **given)


def package(root: Path, made: Kernel, name: str = "opt.deb") -> Path:
    root.mkdir(parents=True, exist_ok=True)
    FORMAT.write(made, None, root / name)
    return root / name
