"""``bootimg``: an Android boot image with the kernel, made of the user's own, or a new one of
version 4 that has a kernel alone, as those of Android 13 and later do."""

from __future__ import annotations

from pathlib import Path

from mepof.arch import Arch
from mepof.bootimg.description import Description, header_fields
from mepof.bootimg.image import BootImage, write
from mepof.bootimg.kernel import check_replaceable, describe, kernel_of, program_for, replaced
from mepof.bootimg.reader import parse, read_file
from mepof.bootimg.tail import with_changes
from mepof.errors import InputError
from mepof.package.protocol import Kernel

_VERSION = 4


class AndroidBootImage:
    """An image for a phone's partition ``boot``."""

    suffix = "boot.img"
    # It takes the place of the kernel that is there, whose modules ask for its release.
    beside = False
    takes_file = True
    has_modules = False
    of_source = False
    programs: tuple[tuple[str, str], ...] = ()

    def check(self, arch: Arch, given: Path | None) -> None:
        if arch.machine is None:
            raise InputError(
                f"no boot loader starts a kernel for {arch.name}",
                "leave the format out, or `set arch` before it",
            )
        if given is None:
            return
        section = kernel_of(_read(given), str(given))
        kernel = describe(section).image
        if kernel is not None and kernel.arch != arch.name:
            raise InputError(
                f"{given} has a kernel for {kernel.arch}, not for {arch.name}",
                f"write `set arch {kernel.arch}`, or name an image with a kernel for {arch.name}",
            )
        check_replaceable(section, str(given))

    def programs_for(self, given: Path) -> tuple[tuple[str, str], ...]:
        program = program_for(kernel_of(_read(given), str(given)))
        return ((program, program),) if program else ()

    def write(self, kernel: Kernel, given: Path | None, target: Path) -> None:
        new = read_file(kernel.image)
        if given is None:
            described = Description(header_version=_VERSION, page_size=4096)
            sections = dict.fromkeys(described.layout.sections, b"")
            fields = header_fields(described, sections, target)
            image = BootImage(described.layout, fields, sections)
            image = image.with_sections(kernel=new)
        else:
            former = _read(given)
            section = replaced(kernel_of(former, str(given)), new, None, str(kernel.image))
            image = with_changes(former, {"kernel": section}, None, given)
        target.write_bytes(write(image))


def _read(path: Path) -> BootImage:
    return parse(read_file(path), str(path))


FORMAT = AndroidBootImage()
