"""Mutates boot images: the reader must refuse them in one line, or write them as they were.

    .venv/bin/python fuzz/bootimg.py SECONDS [--images N] [--seed N] [--jobs N]

Stops after so many seconds, or so many images. Each process may map 256 MiB more than it has after
its imports; one that needs more fails. What failed goes to build/fuzz/crashes/bootimg, which a run
with the file's name instead of SECONDS reads again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import struct
import sys
import time
import traceback
from pathlib import Path

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

from mepof.bootimg.compression import compress  # noqa: E402
from mepof.bootimg.device_tree import table_entries  # noqa: E402
from mepof.bootimg.image import BootImage, write  # noqa: E402
from mepof.bootimg.layout import BOOT, BOOT_WITH_TABLE, VENDOR, Layout  # noqa: E402
from mepof.bootimg.reader import parse  # noqa: E402
from mepof.bootimg.summary import summary, summary_of  # noqa: E402
from mepof.errors import InputError  # noqa: E402

MEMORY_BYTES = 256 << 20
CRASHES = ROOT / "build" / "fuzz" / "crashes" / "bootimg"
# Lengths, offsets, counts and magics at their limits.
WORDS = (0, 1, 4, 63, 64, 2047, 2048, 4096, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
MAGICS = (b"ANDROID!", b"VNDRBOOT", b"AVB0", b"AVBf", b"\xd0\x0d\xfe\xed", b"\xd7\xb7\xab\x1e")
_COMPRESSED = ("gzip", "lz4-legacy", "lz4", "xz", "bzip2", "lzma")


def seeds() -> list[bytes]:
    """Small images of every version, with every compression, and partitions with footers."""
    kernel = arm64_kernel(3000)
    images = [
        _image(layout, page, compress(kernel, name) + device_tree(100))
        for layout in (*BOOT, BOOT_WITH_TABLE, *VENDOR.values())
        for page, name in zip((2048, 4096, 2048) * 2, _COMPRESSED, strict=True)
    ]
    hashes = hash_descriptor("boot", images[0]) + chain_descriptor("vendor_boot")
    footers = [with_footer(each, vbmeta(hashes, algorithm=1), 1 << 16) for each in images[::5]]
    table = struct.pack(">8I", 0xD7B7AB1E, 96, 32, 32, 2, 32, 2048, 0) + bytes(64)
    return [*images, *footers, vbmeta(hashes), table]


def _image(layout: Layout, page_size: int, kernel: bytes) -> bytes:
    fields = {
        name: int.from_bytes(name.encode()[:4], "little") if form in "IQ" else b"console=ttyS0"
        for name, form in layout.fields
        if not name.endswith("_size") and name not in _COMPUTED
    }
    if any(name == "page_size" for name, _ in layout.fields):
        fields["page_size"] = page_size
    sections = {name: some(300, len(name)) for name in layout.sections}
    sections["kernel"] = kernel
    sections["dtb"] = device_tree(200) + device_tree(100)
    sections["ramdisk"] = sections["vendor_ramdisk"] = compress(b"070701" + bytes(100), "gzip")
    return write(BootImage(layout, fields, sections))


_COMPUTED = ("magic", "header_version", "ramdisk_table_entries", "id", "recovery_dtbo_offset")


def mutated(seed: bytes, chance: random.Random) -> bytes:
    """An image with a few changes, most of them where structures are."""
    data = bytearray(seed)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
        kind = chance.randrange(8)
        where = chance.randrange(3)
        at = (
            chance.randrange(min(len(data), 64))
            if where == 0
            else max(len(data) - 1 - chance.randrange(64), 0)
            if where == 1
            else chance.randrange(len(data))
        )
        if kind < 3:
            data[at] = chance.randrange(256)
        elif kind < 5:
            form = chance.choice(("<I", ">I", ">Q"))
            data[at : at + struct.calcsize(form)] = struct.pack(form, chance.choice(WORDS))
        elif kind == 5:
            del data[at : at + chance.choice((1, 4, 64, 2048))]
        elif kind == 6:
            start = chance.randrange(len(data))
            data[at:at] = data[start : start + chance.choice((1, 4, 64, 2048))]
        else:
            magic = chance.choice(MAGICS)
            data[at : at + len(magic)] = magic
        if not data:
            break
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
    return True


def job(number: int, seed: int, seconds: float, images: int) -> tuple[int, int, int]:
    """One process: how many images it tried, how many were accepted, and its peak in KiB."""
    chance = random.Random(f"{seed} {number}")
    known = seeds()
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY_BYTES,) * 2)
    end = time.monotonic() + seconds
    accepted = tried = 0
    while tried < images and (tried % 1000 or time.monotonic() < end):
        data = mutated(chance.choice(known), chance)
        tried += 1
        try:
            accepted += check(data)
        except Exception:
            CRASHES.mkdir(parents=True, exist_ok=True)
            path = CRASHES / f"{seed}-{number}-{tried}"
            path.write_bytes(data)
            traceback.print_exc()
            print(f"bootimg: {path}", file=sys.stderr)
            return -1, accepted, 0
    return tried, accepted, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> int:
    """Run as the command line says; 1 if an image failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("what", metavar="SECONDS|FILE")
    parser.add_argument("--images", type=int, default=sys.maxsize, metavar="N")
    parser.add_argument("--seed", type=int, default=time.time_ns(), metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    options = parser.parse_args()
    if not options.what.isdecimal():
        check(Path(options.what).read_bytes())
        return 0
    each = -(-options.images // options.jobs)
    arguments = [(n, options.seed, float(options.what), each) for n in range(options.jobs)]
    began = time.monotonic()
    with multiprocessing.Pool(options.jobs) as pool:
        done = pool.starmap(job, arguments, chunksize=1)
    took = time.monotonic() - began
    if any(tried < 0 for tried, _, _ in done):
        return 1
    tried, accepted = sum(tried for tried, _, _ in done), sum(a for _, a, _ in done)
    print(f"   executions: {tried} ({tried / took:.0f} a second), {accepted} accepted")
    print(f"   peak MiB: {max(peak for _, _, peak in done) >> 10}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
