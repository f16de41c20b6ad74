"""Mutates boot images: the reader must refuse them in one line, or write them as they were.

    .venv/bin/python fuzz/bootimg.py SECONDS [--images N] [--seed N] [--jobs N] [--resume FILE]

Stops after so many seconds, or so many images. Each process may map 256 MiB more than it has after
its imports; one that needs more fails. What failed goes to build/fuzz/crashes/bootimg, which a run
with the file's name instead of SECONDS reads again. The images of a seed are the same each time;
with --resume, the portions that FILE has are not read again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import random
import resource
import struct
import sys
import time
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from writers.boot_image import (  # noqa: E402
    arm64_kernel,
    chain_descriptor,
    device_tree,
    hash_descriptor,
    some,
    vbmeta,
    with_footer,
)

from mepof.bootimg.compression import NAMES, compress  # noqa: E402
from mepof.bootimg.device_tree import table_entries  # noqa: E402
from mepof.bootimg.image import BootImage, Fragment, write  # noqa: E402
from mepof.bootimg.kernel import decompressed, describe  # noqa: E402
from mepof.bootimg.layout import BOOT, BOOT_WITH_TABLE, VENDOR, Layout  # noqa: E402
from mepof.bootimg.reader import parse  # noqa: E402
from mepof.bootimg.summary import summary, summary_of  # noqa: E402
from mepof.bootimg.tail import tail_of  # noqa: E402
from mepof.errors import InputError  # noqa: E402

MEMORY_BYTES = 256 << 20
PORTION = 20_000
CRASHES = ROOT / "build" / "fuzz" / "crashes" / "bootimg"
# Lengths, offsets, counts and magics at their limits.
_NUMBERS = (0, 1, 4, 63, 64, 2047, 2048, 4096, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
WORDS = [struct.pack(form, number) for form in ("<I", ">I", ">Q") for number in _NUMBERS]
MAGICS = (b"ANDROID!", b"VNDRBOOT", b"AVB0", b"AVBf", b"\xd0\x0d\xfe\xed", b"\xd7\xb7\xab\x1e")
_LENGTHS = (1, 4, 64, 2048)
_CHANGES = (1, 1, 1, 2, 3, 5)


def seeds() -> list[bytes]:
    """Small images of every version, with every compression, and partitions with footers.

    Raises:
        EnvironmentLack: a program that compresses is missing.
    """
    kernel, cpio = arm64_kernel(3000), b"070701" + bytes(100)
    packed = [(kernel, cpio), *((compress(kernel, n), compress(cpio, n)) for n in NAMES)]
    packed.append((b"\x89LZO\0\r\n\x1a\n" + some(500), b"\x89LZO\0\r\n\x1a\n"))
    images = [
        _image(layout, 2048 << at % 2, first + device_tree(100), second)
        for layout in (*BOOT, BOOT_WITH_TABLE, *VENDOR.values())
        for at, (first, second) in enumerate(packed)
    ]
    images += [_image(layout, 4096, b"", packed[2][1]) for layout in BOOT[3:]]
    mediatek = struct.pack("<II32s472s", 0x58881688, len(kernel), b"KERNEL", b"\xff" * 472)
    images.append(_image(BOOT[0], 2048, mediatek + kernel, cpio))
    hashes = hash_descriptor("boot", images[0]) + chain_descriptor("vendor_boot")
    footers = [with_footer(each, vbmeta(hashes, algorithm=1), 1 << 15) for each in images[::5]]
    table = struct.pack(">8I", 0xD7B7AB1E, 96, 32, 32, 2, 32, 2048, 0) + bytes(64)
    return [*images, *footers, vbmeta(hashes), table]


def _image(layout: Layout, page_size: int, kernel: bytes, ramdisk: bytes) -> bytes:
    fields = {
        name: int.from_bytes(name.encode()[:4], "little") if form in "IQ" else b"console=ttyS0"
        for name, form in layout.fields
        if not name.endswith("_size") and name not in _COMPUTED
    }
    if any(name == "page_size" for name, _ in layout.fields):
        fields["page_size"] = page_size
    sections: dict[str, bytes] = {name: some(300, len(name)) for name in layout.sections}
    # A table that is smaller than a page would be read as a version.
    sections["dt"] = some(2100)
    sections["kernel"] = kernel
    sections["dtb"] = device_tree(200) + device_tree(100)
    sections["ramdisk"] = ramdisk
    sections["vendor_ramdisk"] = ramdisk * 2
    board = tuple(range(16))
    parts = tuple(Fragment(len(ramdisk), at, b"part%d" % at, board) for at in (1, 2))
    return write(BootImage(layout, fields, sections, parts if layout is VENDOR[4] else ()))


_COMPUTED = ("magic", "header_version", "ramdisk_table_entries", "id", "recovery_dtbo_offset")


def mutated(seed: bytes, chance: random.Random) -> bytes:
    """An image with a few changes, most of them where structures are."""
    data = bytearray(seed)
    draw = chance.random
    for _ in range(_CHANGES[int(draw() * len(_CHANGES))]):
        size = len(data)
        if not size:
            break
        kind, where = int(draw() * 8), int(draw() * 3)
        at = int(draw() * (size if where == 2 else min(size, 64)))
        if where == 1:
            at = size - 1 - at
        if kind < 3:
            data[at] = int(draw() * 256)
            continue
        if kind == 5:
            del data[at : at + _LENGTHS[int(draw() * len(_LENGTHS))]]
            continue
        if kind == 6:
            start = int(draw() * size)
            data[at:at] = data[start : start + _LENGTHS[int(draw() * len(_LENGTHS))]]
            continue
        words = WORDS if kind < 5 else MAGICS
        word = words[int(draw() * len(words))]
        data[at : at + len(word)] = word
    return bytes(data)


def check(data: bytes) -> bool:
    """Read an image and all that is said of it; whether it was accepted.

    Raises:
        Exception: what is wrong with the reader.
    """
    try:
        if data[:4] == b"AVB0" or table_entries(data) is not None:
            summary(data, "mutated")
            return True
        image = parse(data, "mutated")
        summary_of(image, data, "mutated")
    except InputError:
        return False
    assert write(image) == data, "it came back other than it was"
    tail_of(image.tail, len(data) - len(image.tail))
    return True


def check_kernel(data: bytes) -> None:
    """Decompress the kernel of an image, as ``unpack --decompress`` does.

    Raises:
        Exception: what is wrong with the decoder.
    """
    try:
        kernel = describe(parse(data, "mutated").section("kernel"))
        # Another program decodes zstd.
        if kernel.compression != "zstd":
            decompressed(kernel, "mutated")
    except InputError:
        pass


_KNOWN: list[bytes] = []


def begin() -> None:
    """Make a process ready: the images to change, and the limit of its memory."""
    _KNOWN[:] = seeds()
    for each in _KNOWN:
        assert check(each), "an image that was not changed is refused"
        check_kernel(each)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY_BYTES,) * 2)


def try_portion(seed: int, number: int, images: int, end: float) -> dict[str, Any]:
    """Try images of one portion of a seed.

    Args:
        end: the monotonic second at which to stop.

    Returns:
        What a line of ``--resume`` has: how many images were ``tried`` and ``accepted``, a digest
        of which, and the process's peak memory in KiB. A failure has the name of the image alone.
    """
    chance = random.Random(f"{seed} {number}")
    verdicts = bytearray()
    while len(verdicts) < images and (len(verdicts) % 500 or time.monotonic() < end):
        data = mutated(_KNOWN[int(chance.random() * len(_KNOWN))], chance)
        try:
            verdicts.append(check(data))
            if len(verdicts) % 10 == 0:
                check_kernel(data)
        except Exception:
            CRASHES.mkdir(parents=True, exist_ok=True)
            path = CRASHES / f"{seed}-{number}-{len(verdicts)}"
            path.write_bytes(data)
            traceback.print_exc()
            return {"failed": str(path)}
    return {
        "seed": seed,
        "portion": number,
        "tried": len(verdicts),
        "accepted": sum(verdicts),
        "verdicts": hashlib.sha256(verdicts).hexdigest()[:16],
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


def job(number: int, options: argparse.Namespace, end: float) -> list[dict[str, Any]]:
    """One process of ``options.jobs``: every so many portions, as :func:`try_portion` has them."""
    begin()
    known = {(line["seed"], line["portion"]) for line in resumed(options)}
    lines = []
    for at in range(number, -(-options.images // PORTION), options.jobs):
        if (options.seed, at) in known:
            continue
        if time.monotonic() >= end:
            break
        size = min(PORTION, options.images - at * PORTION)
        lines.append(line := try_portion(options.seed, at, size, end))
        if "failed" in line:
            break
        if options.resume and line["tried"] == size:
            with options.resume.open("a") as file:
                file.write(json.dumps(line) + "\n")
    return lines


def resumed(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The lines of ``--resume`` that the seed has."""
    if options.resume is None or not options.resume.exists():
        return []
    lines = (json.loads(line) for line in options.resume.read_text().splitlines())
    return [line for line in lines if line["seed"] == options.seed]


def main() -> int:
    """Run as the command line says; 1 if an image failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("what", metavar="SECONDS|FILE")
    parser.add_argument("--images", type=int, default=1 << 40, metavar="N")
    parser.add_argument("--seed", type=int, default=time.time_ns(), metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--resume", type=Path, metavar="FILE")
    options = parser.parse_args()
    if not options.what.isdecimal():
        check(data := Path(options.what).read_bytes())
        check_kernel(data)
        return 0
    before = resumed(options)
    began = time.monotonic()
    arguments = [(n, options, began + float(options.what)) for n in range(options.jobs)]
    with multiprocessing.Pool(options.jobs) as pool:
        now = [line for lines in pool.starmap(job, arguments, chunksize=1) for line in lines]
    for line in now:
        if "failed" in line:
            print(f"bootimg: {line['failed']}", file=sys.stderr)
            return 1
    took = time.monotonic() - began
    tried = sum(line["tried"] for line in now)
    print(f"   executions: {tried} ({tried / took:.0f} a second)")
    lines = [*before, *now]
    for key in ("tried", "accepted"):
        print(f"   {key} in all: {sum(line[key] for line in lines)}")
    print(f"   peak MiB: {max(line['peak'] for line in lines) >> 10}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
