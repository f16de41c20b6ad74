"""``mepof bootimg``: another kernel in an image, and what is said of it."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from writers.boot_image import (
    arm64_kernel,
    device_tree,
    hash_descriptor,
    vbmeta,
    with_footer,
)
from writers.kernel_image import bz_image

from mepof.bootimg.compression import compress
from mepof.bootimg.reader import parse
from mepof.cli.main import main
from mepof.g4.instrumentation import instrumentation

Call = Callable[..., tuple[int, str, str]]
PARTITION = 1 << 20


@pytest.fixture
def mepof(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Call:
    """Calls ``mepof bootimg`` in a directory of its own: status, output, errors."""
    monkeypatch.chdir(tmp_path)

    def called(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["mepof", "bootimg", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capsys.readouterr()

    return called


@pytest.fixture
def boot(mepof: Call) -> Path:
    """``boot.img``: a compressed kernel with a device tree, in a partition with a footer."""
    directory = Path("parts")
    directory.mkdir()
    (directory / "k").write_bytes(compress(arm64_kernel(), "gzip") + device_tree())
    (directory / "r").write_bytes(compress(b"070701" + bytes(500), "gzip"))
    (directory / "bootimg.toml").write_text(
        'header_version = 2\ncmdline = "a=b"\n[files]\nkernel = "k"\nramdisk = "r"\n'
    )
    assert mepof("pack", "parts", "-o", "plain.img")[0] == 0
    content = Path("plain.img").read_bytes()
    meta = vbmeta(hash_descriptor("boot", content), algorithm=2)
    Path("boot.img").write_bytes(with_footer(content, meta, PARTITION))
    return Path("boot.img")


def mediatek(name: bytes, content: bytes) -> bytes:
    """As MediaTek's mkimage writes it."""
    return struct.pack("<II32s472s", 0x58881688, len(content), name, b"\xff" * 472) + content


def test_a_ramdisk_and_a_device_tree_keep_mediatek_s_header(mepof: Call) -> None:
    old, new = (compress(b"070701" + bytes(size), "gzip") for size in (500, 900))
    Path("k").write_bytes(mediatek(b"KERNEL", arm64_kernel()))
    Path("r").write_bytes(mediatek(b"ROOTFS", old))
    Path("d").write_bytes(mediatek(b"DTB", device_tree()))
    Path("bootimg.toml").write_text(
        'header_version = 2\n[files]\nkernel = "k"\nramdisk = "r"\ndtb = "d"\n'
    )
    assert mepof("pack", ".", "-o", "boot.img")[0] == 0
    out = mepof("show", "boot.img")[1]
    assert "cpio gzip, header of MediaTek" in out
    assert "1 device tree, header of MediaTek" in out
    Path("new").write_bytes(new)
    Path("tree").write_bytes(device_tree(700, 9))
    assert mepof("pack", "boot.img", "--ramdisk=new", "--dtb=tree", "-o", "new.img")[0] == 0
    image = parse(Path("new.img").read_bytes(), "new.img")
    assert image.section("ramdisk") == mediatek(b"ROOTFS", new)
    assert image.section("dtb") == mediatek(b"DTB", device_tree(700, 9))
    # What brings a header has its own.
    Path("own").write_bytes(mediatek(b"RECOVERY", new))
    assert mepof("pack", "boot.img", "--ramdisk=own", "-o", "new.img")[0] == 0
    made = parse(Path("new.img").read_bytes(), "new.img").section("ramdisk")
    assert made == mediatek(b"RECOVERY", new)


def test_another_kernel_goes_into_an_image(mepof: Call, boot: Path) -> None:
    new = arm64_kernel(200_000)
    Path("opt.img").write_bytes(new)
    status, out, _ = mepof("pack", str(boot), "--kernel", "opt.img", "-o", "new.img")
    assert status == 0
    assert "arm64 Image, gzip, 1 device tree appended" in out
    assert "a locked phone refuses the image; an unlocked one boots it with a warning" in out
    data = Path("new.img").read_bytes()
    assert len(data) == PARTITION
    assert parse(data, "new.img").section("kernel") == compress(new, "gzip") + device_tree()
    assert not list(Path().glob(".*partial"))


def test_an_unpacked_image_packs_to_itself(mepof: Call, boot: Path) -> None:
    assert mepof("unpack", str(boot), "-o", "parts2", "--decompress")[0] == 0
    assert Path("parts2/kernel.decompressed").read_bytes() == arm64_kernel()
    assert Path("parts2/kernel_dtb").read_bytes() == device_tree()
    assert mepof("pack", "parts2", "-o", "again.img")[0] == 0
    assert Path("again.img").read_bytes() == boot.read_bytes()


def test_a_full_disk_is_failed_work_and_leaves_no_part(
    mepof: Call, boot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    status, _, err = mepof("unpack", str(boot), "-o", "parts2")
    assert (status, "parts2 cannot be written: No space left" in err) == (1, True)
    assert list(Path("parts2").iterdir()) == []


def test_a_file_system_that_cannot_be_written_is_one_error(
    mepof: Call, boot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(path: Path, *given: object, **options: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    mepof("unpack", str(boot), "-o", "parts2")
    monkeypatch.setattr(Path, "replace", read_only)
    monkeypatch.setattr(Path, "unlink", read_only)
    status, _, err = mepof("pack", "parts2", "-o", "again.img")
    assert (status, "again.img cannot be written: Read-only file system" in err) == (2, True)


def test_a_changed_directory_moves_the_footer(mepof: Call, boot: Path) -> None:
    mepof("unpack", str(boot), "-o", "parts2")
    Path("parts2/kernel").write_bytes(arm64_kernel(500_000))
    status, out, _ = mepof("pack", "parts2", "-o", "again.img")
    assert status == 0
    assert "the hash does not match" in out
    assert Path("again.img").stat().st_size == PARTITION


def test_a_command_line_is_replaced(mepof: Call, boot: Path) -> None:
    assert mepof("pack", str(boot), "--cmdline", "c=d " * 200, "-o", "new.img")[0] == 0
    image = parse(Path("new.img").read_bytes(), "new.img")
    assert image.cmdline == b"c=d " * 200


def test_show_prints_one_document(mepof: Call, boot: Path) -> None:
    status, out, _ = mepof("show", str(boot), "--json")
    document = json.loads(out)
    assert status == 0
    assert document["schema"] == "mepof-bootimg-show/1"
    assert document["facts"]["header version"] == "2"
    kernel = document["parts"][0]
    assert (kernel["name"], kernel["offset"], kernel["address"]) == ("kernel", 2048, 0x10008000)


MODEL = """\
title = "made up"
source = "nowhere"
memory = { start = 0x10000000, size = 0x2000000 }
partitions = { boot = 1048576 }
"""


@pytest.mark.parametrize(
    ("in_memory", "status", "said"),
    [
        (8 << 20, 0, "nothing overlaps with other addresses of: kernel"),
        (20 << 20, 0, "mkbootimg --base 0x10000000 --kernel_offset=0x200000 --ramdisk_offset=0x"),
        (48 << 20, 1, "no addresses fit: the kernel takes 50331648 bytes of memory, 1"),
    ],
)
def test_a_plan_says_where_things_go(
    mepof: Call, boot: Path, in_memory: int, status: int, said: str
) -> None:
    Path("model.toml").write_text(MODEL)
    Path("new").write_bytes(arm64_kernel(in_memory=in_memory))
    ended, out, _ = mepof("plan", str(boot), "--model", "model.toml", "--kernel", "new")
    assert (ended, said in out) == (status, True), out
    # `--base` moves every address that is not given.
    assert ("mkbootimg" in out) == ("--tags_offset=0x" in out) == (status == 0)
    ended, out, _ = mepof("plan", str(boot), "--model", "model.toml", "--kernel", "new", "--json")
    document = json.loads(out)
    assert (ended, document["fits"]) == (status, status == 0)
    assert document["kernel_size"] == in_memory
    # Where it does not fit, that is for what it has in memory alone.
    assert document["instrument"] is None


def test_an_image_is_not_packed_over_its_source(mepof: Call, boot: Path) -> None:
    before = boot.read_bytes()
    status, _, said = mepof(
        "pack", str(boot), "--cmdline", "x=y", "-o", f"../{Path.cwd().name}/{boot}"
    )
    assert (status, "boot.img is the source" in said) == (2, True)
    assert boot.read_bytes() == before


@pytest.mark.usefixtures("boot")
def test_only_device_trees_take_the_place_of_a_device_tree(mepof: Call) -> None:
    Path("board.dtb").write_bytes(device_tree())
    assert mepof("pack", "plain.img", "--dtb", "board.dtb", "-o", "new.img")[0] == 0
    status, _, said = mepof("pack", "plain.img", "--dtb", "parts/r", "-o", "other.img")
    assert (status, "parts/r is not a device tree" in said) == (2, True)
    assert not Path("other.img").exists()


@pytest.mark.usefixtures("boot")
@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "an empty file"),
        (arm64_kernel(), "a kernel"),
        (compress(arm64_kernel(), "gzip"), "a kernel"),
        (None, "a boot image"),
        (b"070701" + bytes(500), None),
        (b"of a form that nobody knows", None),
    ],
)
def test_what_is_no_ramdisk_does_not_take_the_place_of_one(
    mepof: Call, content: bytes | None, what: str | None
) -> None:
    given = Path("plain.img").read_bytes() if content is None else content
    Path("other").write_bytes(given)
    status, _, said = mepof("pack", "plain.img", "--ramdisk", "other", "-o", "new.img")
    assert (status, Path("new.img").exists()) == ((0, True) if what is None else (2, False))
    assert what is None or f"other is not a ramdisk, but {what}" in said


def test_a_plan_says_that_the_boot_loader_does_not_decompress_the_kernel(
    mepof: Call, boot: Path
) -> None:
    command = ("plan", str(boot), "--model", "model.toml")
    Path("model.toml").write_text('compressions = ["gzip"]\n' + MODEL)
    assert mepof(*command)[0] == 0
    Path("model.toml").write_text('compressions = ["xz"]\n' + MODEL)
    status, out, _ = mepof(*command)
    said = "the kernel is compressed by gzip, which `compressions` of the model does not list"
    assert (status, said in out.splitlines()) == (1, True)
    status, out, _ = mepof(*command, "--json")
    document = json.loads(out)
    assert (status, document["fits"], document["problems"][0]) == (1, False, said)


def test_a_plan_says_that_the_partition_is_too_small(mepof: Call, boot: Path) -> None:
    Path("model.toml").write_text(MODEL.replace("1048576", "262144"))
    status, out, _ = mepof("plan", str(boot), "--model", "model.toml")
    assert status == 1
    assert "more than its 262144" in out
    limit = re.search(r"instrument less: `set instrument (\d+)K\.`", out)
    assert limit is not None
    # As a program reads it, and as much of the uncompressed image as would fit.
    assert instrumentation(f"{limit[1]}K").image_bytes == int(limit[1]) << 10
    status, out, _ = mepof("plan", str(boot), "--model", "model.toml", "--json")
    (found,) = json.loads(out)["partitions"]
    assert found["image_limit"] >> 10 == int(limit[1])


@pytest.mark.parametrize(
    ("words", "message", "remedy"),
    [
        (("show", "none.img"), "none.img cannot be read: No such file", "name an image"),
        (("plan", "boot.img", "--model", "no"), "cannot read the phone model no", "docs/bootimg"),
        (("show", "."), ". is not a file", "name an image"),
        (("show", "text"), "text is not an Android boot image", "name boot.img"),
        (("unpack", "dtbo.img", "-o", "d"), "dtbo.img is a dtbo image", "name a boot image"),
        (("unpack", "boot.img", "-o", "parts"), "parts is not empty", "new directory"),
        (("unpack", "boot.img", "-o", "text"), "text cannot be written", ""),
        (("pack", "empty", "-o", "x"), "empty has no bootimg.toml", "mepof bootimg unpack"),
        (
            ("pack", "boot.img", "--kernel", "bz", "-o", "x"),
            "bz is a kernel for x86-64, and the one in the image is for arm64",
            "name a kernel for arm64",
        ),
        (
            ("pack", "init", "--kernel", "big", "-o", "x"),
            "init has no kernel",
            "name the phone's boot.img, not its init_boot",
        ),
        (
            ("pack", "vendor", "--ramdisk", "text", "-o", "x"),
            "vendor: vendor_boot of version 4 has no ramdisk",
            "`mepof bootimg unpack` it, replace files of its vendor_ramdisk, and pack that",
        ),
        (
            ("pack", "boot.img", "--compression", "zip", "-o", "x"),
            "unknown compression `zip`",
            "known: none, gzip",
        ),
        (
            ("pack", "boot.img", "--cmdline", "x" * 1535, "-o", "x"),
            "the command line has 1535 bytes",
            "",
        ),
        (
            ("pack", "boot.img", "--kernel", "big", "-o", "x"),
            "more than the 1048576 of the file before",
            "set exclude",
        ),
        (("pack", "boot.img", "-o", "none/x"), "none/x cannot be written", ""),
    ],
)
def test_wrong_input_is_one_line(
    mepof: Call, boot: Path, words: tuple[str, ...], message: str, remedy: str
) -> None:
    Path("text").write_text("text")
    Path("empty").mkdir()
    Path("init").mkdir()
    Path("init/bootimg.toml").write_text("header_version = 4\n")
    Path("vendor").mkdir()
    Path("vendor/bootimg.toml").write_text("kind = 'vendor_boot'\nheader_version = 4\n")
    Path("bz").write_bytes(bz_image())
    Path("big").write_bytes(arm64_kernel(2_000_000))
    Path("dtbo.img").write_bytes(struct.pack(">8I", 0xD7B7AB1E, 32, 32, 32, 0, 32, 2048, 0))
    status, out, err = mepof(*words)
    assert (status, out) == (2, "")
    assert message in err
    assert remedy in err
    assert len(err.splitlines()) <= 2


def test_a_device_is_written_to_and_not_replaced(mepof: Call, boot: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(read, fcntl.F_SETPIPE_SZ, PARTITION)  # all of plain.img, or writing would wait
    try:
        status, out, err = mepof("pack", "parts", "-o", str(pipe))
        assert (status, out) == (0, "")
        assert f"{pipe}: boot" in err
        assert pipe.is_fifo()
        assert os.read(read, 1 << 20) == Path("plain.img").read_bytes()
    finally:
        os.close(read)


def test_an_output_that_is_a_link_stays_one(mepof: Call, boot: Path) -> None:
    Path("link.img").symlink_to("target.img")
    assert mepof("pack", "parts", "-o", "link.img")[0] == 0
    assert Path("link.img").is_symlink()
    assert Path("target.img").read_bytes() == Path("plain.img").read_bytes()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("header_version = 7", "boot has no header version 7"),
        ("header_version = 2\npage_size = 1000", "page_size is 1000"),
        ("header_version = 3\nkernel_adress = 1", "unknown key `kernel_adress`"),
        ("header_version = 3\n[files]\nsecond = 's'", "version 3 has no section `second`"),
        ("header_version = 3\n[files]\nkernel = 'none'", "none cannot be read"),
        ("header_version = 3\n[files]\nkernel = 'none'", "bootimg.toml names it: unpack"),
        ("header_version = 3\n[files]\nkernal = 'k'", "kernal"),
        ("header_version = 1\nos_version = 'x'", "`x` is not a version"),
        ("header_version = 1\nos_patch_level = '1999-01'", "`1999-01` is not a patch level"),
        ("header_version = 1\nname = 'sixteen letters.'", "longer than 15 bytes"),
        ("header_version = 1\ncmdline_hex = '00'", "cmdline_hex has 1 bytes, not 1536"),
        ("header_version = 4\n[[fragments]]\nfile = 'x'", "only vendor_boot of version 4"),
    ],
)
def test_a_wrong_description_is_one_line(
    mepof: Call, tmp_path: Path, line: str, message: str
) -> None:
    Path("wrong").mkdir()
    Path("wrong/bootimg.toml").write_text(line + "\n")
    status, _, err = mepof("pack", "wrong", "-o", "x.img")
    assert status == 2
    assert message in err
    assert not Path("x.img").exists()
