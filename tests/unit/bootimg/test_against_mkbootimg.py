"""The same input gives the same bytes as AOSP's mkbootimg, and its images come back as they were.

``make test`` installs it. Releases before 30 do not know versions 3 and 4.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from writers.boot_image import some

from mepof.bootimg.directory import packed, unpacked
from mepof.bootimg.image import write
from mepof.bootimg.reader import parse

MKBOOTIMG = shutil.which("mkbootimg")
NO_MKBOOTIMG = "mkbootimg 30 or newer is not installed: MEPOF_SETUP_TESTS=1 tools/setup"


def suffices() -> bool:
    """Whether mkbootimg is installed and knows version 4."""
    if MKBOOTIMG is None:
        return False
    said = subprocess.run([MKBOOTIMG, "--help"], capture_output=True, text=True, check=False)
    return "--vendor_bootconfig" in said.stdout


pytestmark = pytest.mark.skipif(not suffices(), reason=NO_MKBOOTIMG)


@dataclass
class Wanted:
    """An image for both programs."""

    directory: Path
    lines: list[str]
    files: dict[str, str] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)

    def file(self, name: str, size: int, option: str | None = None) -> None:
        """A section of this size, under the same name in the description."""
        (self.directory / name).write_bytes(some(size, len(self.files)))
        self.files[name] = name
        self.arguments += [f"--{option or name}", str(self.directory / name)]

    def described(self) -> bytes:
        """What mepof makes of it."""
        lines = [*self.lines, "[files]", *(f'{key} = "{at}"' for key, at in self.files.items())]
        (self.directory / "bootimg.toml").write_text("\n".join([*lines, *self.tables]) + "\n")
        return write(packed(self.directory))

    def by_mkbootimg(self, output: str) -> bytes:
        """What mkbootimg makes of it."""
        made = self.directory / "made.img"
        subprocess.run([str(MKBOOTIMG), *self.arguments, output, str(made)], check=True)
        return made.read_bytes()


def check(wanted: Wanted, output: str, again: Path) -> None:
    """Both programs make the same image, and a directory of it makes the image again."""
    expected = wanted.by_mkbootimg(output)
    assert wanted.described() == expected
    image = parse(expected, "made.img")
    assert write(image) == expected
    again.mkdir()
    for name, data in unpacked(image).files.items():
        (again / name).write_bytes(data)
    assert write(packed(again)) == expected


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("seed", range(8))
def test_boot_images_are_the_same(tmp_path: Path, version: int, seed: int) -> None:
    chance = random.Random(f"{version} {seed}")
    directory = tmp_path / "wanted"
    directory.mkdir()
    cmdline = "a=b " * chance.choice([0, 1, 100, 127, 128, 129, 383])
    wanted = Wanted(directory, [f"header_version = {version}", f'cmdline = "{cmdline}"'])
    wanted.arguments += ["--header_version", str(version), "--cmdline", cmdline]
    if seed:
        wanted.lines += ['os_version = "12.1.3"', 'os_patch_level = "2024-11"']
        wanted.arguments += ["--os_version", "12.1.3", "--os_patch_level", "2024-11"]
    sizes = [1, 2047, 2048, 2049, 4096, chance.randrange(1, 100_000)]
    wanted.file("kernel", chance.choice(sizes))
    if seed != 1:
        wanted.file("ramdisk", chance.choice(sizes))
    if version < 3:
        page = chance.choice([2048, 4096, 8192, 16384])
        addresses = {name: chance.randrange(1 << 31) for name in ("kernel", "tags")}
        wanted.lines += [f"page_size = {page}", 'name = "näme"']
        wanted.arguments += ["--pagesize", str(page), "--base", "0", "--board", "näme"]
        for name, address in addresses.items():
            wanted.lines.append(f"{name}_address = {address:#x}")
            wanted.arguments += [f"--{name}_offset", hex(address)]
        # mkbootimg's, without its base
        wanted.lines += [f"ramdisk_address = {0x1000000 if 'ramdisk' in wanted.files else 0}"]
        wanted.lines += [f"dtb_address = {0x1F00000:#x}"]
        if chance.random() < 0.5:
            wanted.file("second", chance.choice(sizes))
            wanted.lines.append("second_address = 0xf00000")
    if version in (1, 2) and chance.random() < 0.7:
        wanted.file("recovery_dtbo", chance.choice(sizes))
    if version == 2:
        wanted.file("dtb", chance.choice(sizes))
    check(wanted, "--output", tmp_path / "again")


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("seed", range(6))
def test_vendor_boot_images_are_the_same(tmp_path: Path, version: int, seed: int) -> None:
    chance = random.Random(f"vendor {version} {seed}")
    directory = tmp_path / "wanted"
    directory.mkdir()
    page = chance.choice([2048, 4096, 8192, 16384])
    cmdline = "console=ttyS0 " * chance.choice([0, 1, 146])
    wanted = Wanted(
        directory,
        [
            'kind = "vendor_boot"',
            f"header_version = {version}",
            f"page_size = {page}",
            f'cmdline = "{cmdline}"',
            'name = "board"',
        ],
    )
    wanted.arguments += ["--header_version", str(version), "--pagesize", str(page)]
    wanted.arguments += ["--vendor_cmdline", cmdline, "--board", "board"]
    if seed:
        wanted.file("dtb", chance.randrange(1, 20_000))
    if version == 3:
        wanted.file("vendor_ramdisk", chance.randrange(1, 50_000))
        check(wanted, "--vendor_boot", tmp_path / "again")
        return
    if chance.random() < 0.5:
        wanted.file("bootconfig", chance.randrange(1, 5000), "vendor_bootconfig")
    for number in range(seed):
        kind = chance.choice(["none", "platform", "recovery", "dlkm", "0x77"])
        board = [chance.choice([0, 0, 0, 0xFFFFFFFF]) for _ in range(16)]
        file = directory / f"fragment{number}"
        file.write_bytes(some(chance.randrange(0, 9000), number))
        wanted.arguments += ["--ramdisk_type", kind, "--ramdisk_name", f"part{number}"]
        for index, word in enumerate(board):
            wanted.arguments += [f"--board_id{index}", str(word)]
        wanted.arguments += ["--vendor_ramdisk_fragment", str(file)]
        wanted.tables += [
            "[[fragments]]",
            f'file = "{file.name}"',
            f'name = "part{number}"',
            f"type = {kind if kind.startswith('0x') else chr(34) + kind + chr(34)}",
            f"board_id = {board}",
        ]
    check(wanted, "--vendor_boot", tmp_path / "again")
