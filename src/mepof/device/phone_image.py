"""The boot images of phones: their own, as models describe them, and those with our kernels."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mepof.bootimg.image import BootImage, split_cmdline, write
from mepof.bootimg.kernel import check_replaceable, describe, kernel_of, program_for, replaced
from mepof.bootimg.model import read_model
from mepof.bootimg.plan import plan
from mepof.bootimg.reader import parse, read_file
from mepof.bootimg.tail import with_changes
from mepof.device import adb, fastboot
from mepof.device.attached import Attached, PhoneModel, model_of, model_path
from mepof.errors import InputError
from mepof.process import find_tool

TOKEN = "mepof.boot"
"""Parameter of kernels that mepof packs; its value tells one boot image from another."""


@dataclass(frozen=True)
class Packed:
    """A boot image for a phone.

    Attributes:
        token: in its command line.
        digest: of the file.
        kernel: digest of the kernel that it was packed from.
    """

    path: Path
    token: str
    digest: str
    kernel: str


def check_models(phones: Sequence[Attached], arch: str) -> None:
    """Check the models of phones, and the files that they name.

    Raises:
        InputError: one cannot be read, or is wrong; or the image of each has a kernel for another
            architecture.
    """
    others = []
    for phone in phones:
        model = model_of(phone)
        if model.limits is not None:
            read_model(described(phone, model.limits), "correct `limits` in the model")
        if model.image is not None:
            path = described(phone, model.image)
            section = read_image(path, model).section("kernel")
            check_replaceable(section, str(path))
            kernel = describe(section).image
            if kernel is not None and kernel.arch != arch:
                others.append((path, kernel.arch))
    if others and len(others) == len(phones):
        path, other = others[0]
        raise InputError(
            f"{path} has a kernel for {other}, not for {arch}",
            f"write `set arch {other}`, or correct `image` in the model",
        )


def check_programs(phones: Sequence[Attached]) -> None:
    """Look for the programs that phones need, before a kernel is built.

    Raises:
        EnvironmentLack: one is missing.
        InputError: an image that a model names cannot be read.
    """
    for name, install in (("adb", adb.INSTALL), ("fastboot", fastboot.INSTALL)):
        find_tool(name, install)
    for phone in phones:
        model = model_of(phone)
        if model.image is not None:
            own = read_image(described(phone, model.image), model)
            if program := program_for(own.section("kernel")):
                find_tool(program, f"apt-get install {program}")


def described(phone: Attached, name: str) -> Path:
    """A file that a phone's model names."""
    return (model_path(phone).parent / name).resolve()


def read_image(path: Path, model: PhoneModel) -> BootImage:
    """The boot image of a phone's own system."""
    image = parse(read_file(path, "correct `image` in the model"), str(path))
    kernel_of(image, str(path))
    if model.header_version not in (None, image.version):
        raise InputError(
            f"{path} has a header of version {image.version}, not {model.header_version}",
            "correct `header_version` or `image` in the model",
        )
    return image


def pack(
    phone: Attached,
    model: PhoneModel,
    own: Path,
    kernel: Path,
    parameters: tuple[str, ...],
    where: Path,
) -> Packed:
    """A phone's own boot image with another kernel; the ramdisk stays.

    Args:
        own: its own.
        parameters: for the kernel's command line.
        where: file to write.

    Raises:
        InputError: the kernel does not fit to the phone.
    """
    image = read_image(own, model)
    token = secrets.token_hex(8)
    given = read_file(kernel)
    section = replaced(image.section("kernel"), given, None, str(kernel))
    words = [
        word
        for word in image.cmdline.decode("utf-8", "replace").split()
        if not word.startswith(f"{TOKEN}=")
    ]
    cmdline = " ".join([*words, *parameters, f"{TOKEN}={token}"])
    fields = split_cmdline(cmdline.encode(), image.layout)
    if fields is None:
        raise InputError(f"{own} has no space for the command line `{cmdline}`")
    changed = {"kernel": section}
    # What is flashed is compared with the partition then.
    made = _placed(phone, model, with_changes(image, changed, cmdline, own, for_partition=False))
    data = write(made)
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_bytes(data)
    digests = (hashlib.sha256(each).hexdigest() for each in (data, given))
    return Packed(where, token, *digests)


def _placed(phone: Attached, model: PhoneModel, image: BootImage) -> BootImage:
    """The image at addresses at which nothing overlaps, where the limits are described."""
    if model.limits is None or "kernel_address" not in image.fields:
        return image
    limits = read_model(described(phone, model.limits))
    found = plan([image], limits)
    if not found.problems:
        return image
    if not found.fits:
        raise InputError(
            f"the kernel does not fit into {limits.title}: {found.problems[0]}",
            "instrument less of it (`set exclude`)",
        )
    return found.placed(image)
