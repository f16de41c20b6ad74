"""What a virtual phone has out of the box: a ramdisk with the real adbd, and its boot image."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

from mepof.app.debian import package_files
from mepof.app.laid import Laid, resolve
from mepof.bootimg.image import BootImage, Fragment, split_cmdline, write
from mepof.bootimg.layout import VENDOR, Layout, layout_of
from mepof.bootimg.model import Model
from mepof.bootimg.plan import plan
from mepof.device.initramfs import Entry, archive, tree
from mepof.distribution import codename
from mepof.errors import EnvironmentLack, InputError
from mepof.kernel.overlay import native_directory
from mepof.process import run
from mepof.toolchain import guest

HEADER_VERSIONS = tuple(range(5))
_PACKAGES = ("adbd", "busybox-static")
# What a program only needs where text is not ASCII.
_WITHOUT = (
    *("usr/share/", "etc/", "lib/systemd/", "usr/lib/systemd/", "bin/", "usr/bin/", "sbin/"),
    "usr/sbin/",
)
# The phone has directories of its own there.
_LINKS = ("bin", "sbin")
_PAGE_SIZE = 4096


def ramdisk(arch: str, work: Path) -> bytes:
    """The ramdisk: BusyBox, Debian's adbd with its libraries, and what stands in for Android.

    Args:
        work: scratch directory.

    Raises:
        EnvironmentLack: the compiler of guests is missing, or Debian's packages are not available.
    """
    source = native_directory() / "phone"
    compiler = guest.target(arch).compiler
    guest.identity(guest.target(arch))  # says how to install what is missing
    run(["make", "-s", "-C", source, f"OUT={work}", f"GUEST_CC={compiler}"])
    packages = _packages(arch)
    entries = [
        laid.entry(path)
        for path, laid in packages.items()
        if not path.startswith(_WITHOUT) and path not in _LINKS and "/gconv/" not in path
    ]
    busybox = packages[resolve("bin/busybox", packages) or ""]
    root = source / "root"
    for path in sorted(each for each in root.rglob("*") if each.is_file()):
        entries.append(Entry(str(path.relative_to(root)), 0o755, path.read_bytes()))
    entries += [
        Entry("bin/busybox", 0o755, busybox.content()),
        Entry("bin/bridge", 0o755, (work / "bridge").read_bytes()),
        Entry("bin/standin", 0o755, (work / "standin/standin").read_bytes()),
        Entry("bin/ipv4.so", 0o755, (work / "ipv4.so").read_bytes()),
        # The first process needs a console before it can mount /dev.
        Entry("dev/console", 0o600, b"", device=(5, 1)),
    ]
    return gzip.compress(archive(tree(entries)), 6, mtime=0)


def _packages(arch: str) -> dict[str, Laid]:
    try:
        return package_files(_PACKAGES, (), arch)[0]
    except InputError:
        # Debian 12 has adbd among its backports only.
        backports = f"{codename() or 'bookworm'}-backports"
    try:
        return package_files(_PACKAGES, (), arch, backports)[0]
    except InputError as error:
        raise EnvironmentLack(
            f"apt-get finds no adbd for the phone: {error.message}",
            f"add {backports} to the sources of apt, and run apt-get update",
        ) from error


def images(kernel: bytes, ramdisk: bytes, version: int, model: Model) -> dict[str, bytes]:
    """The images of a phone with a kernel, by the partition that each is for.

    Args:
        version: of the headers; from 3 on there is a vendor_boot, and with 4 an init_boot.

    Raises:
        InputError: they do not fit into the phone.
    """
    layout = layout_of("boot", version)
    assert layout is not None
    if version < 3:
        boot = _empty(layout).with_sections(kernel=kernel, ramdisk=ramdisk)
        return _checked({"boot": _placed(boot, [boot], model)}, model)
    empty = gzip.compress(archive(()), mtime=0)
    vendor = _empty(VENDOR[version]).with_sections(vendor_ramdisk=empty)
    if version == 4:
        vendor = replace(vendor, fragments=(Fragment(len(empty), 1, bytes(32), (0,) * 16),))
    boot = _empty(layout).with_sections(kernel=kernel)
    if version == 3:
        boot = boot.with_sections(ramdisk=ramdisk)
        return _checked(
            {"boot": boot, "vendor_boot": _placed(vendor, [boot, vendor], model)}, model
        )
    init = _empty(layout).with_sections(ramdisk=ramdisk)
    placed = _placed(vendor, [boot, vendor, init], model)
    return _checked({"boot": boot, "vendor_boot": placed, "init_boot": init}, model)


def _checked(made: dict[str, BootImage], model: Model) -> dict[str, bytes]:
    written = {name: write(image) for name, image in made.items()}
    sizes = {str(name): size for name, size in model.partitions.items()}
    for name, data in written.items():
        if len(data) > sizes.get(name, 0):
            raise InputError(
                f"the phone's {name} image has {len(data)} bytes, and the partition "
                f"{sizes.get(name, 0)}",
                "describe a model with a larger one (`--model FILE`)",
            )
    return written


def _empty(layout: Layout) -> BootImage:
    values: dict[str, int | bytes] = {
        name: b"" if form.endswith("s") else 0
        for name, form in layout.fields
        if name not in layout.computed and name not in ("id", "recovery_dtbo_offset")
    }
    if "page_size" in layout.names:
        values["page_size"] = _PAGE_SIZE
    values |= split_cmdline(b"", layout) or {}
    return BootImage(layout, values, dict.fromkeys(layout.sections, b""))


def _placed(header: BootImage, together: list[BootImage], model: Model) -> BootImage:
    """The image with the addresses, at which nothing overlaps."""
    others = [each for each in together if each is not header]
    start = {name: model.start for name in header.fields if name.endswith("_address")}
    header = replace(header, fields={**header.fields, **start})
    found = plan([header, *others], model)
    if not found.fits:
        raise InputError(
            f"kernel and ramdisk do not fit into the phone's memory: {found.problems[0]}",
            "describe a model with more of it (`--model FILE`)",
        )
    return found.placed(header)
