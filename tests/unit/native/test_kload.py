"""The load of kernel code: its cases, its file system, and its program alone."""

from __future__ import annotations

import errno
import re
import subprocess
from pathlib import Path

import pytest

from mepof.device import ext4
from mepof.errors import EnvironmentLack
from mepof.process import run
from mepof.suite.cases import load_suite

from .conftest import ABI_FLAGS, NATIVE
from .kload_blocks import MEBIBYTES, TABLE, image, table

HERE = Path(__file__).with_name("kload")
KERNEL = NATIVE / "overlays/kload/kernel/kload"
PAGE = NATIVE.parent / "docs/suites/kload.md"
CASES = [case.name for case in load_suite("kload").cases]


def test_the_kernel_the_suite_and_the_page_have_the_same_cases() -> None:
    groups = re.findall(r"\bkload_\w+(?=[,\n])", (KERNEL / "main.c").read_text())
    sources = {group: KERNEL / f"{group.removeprefix('kload_')}.c" for group in groups}
    rows = [re.findall(r'^\t\{ "([\w-]+)",', path.read_text(), re.M) for path in sources.values()]
    assert [case for group in rows for case in group] == CASES
    assert [
        case
        for cases in re.findall(r"^\| `kload` \| (.*?) \|", PAGE.read_text(), re.M)
        for case in re.findall(r"`([\w-]+)`", cases)
    ] == CASES


def test_a_disk_in_memory_holds_the_file_system() -> None:
    lines = (NATIVE.parent / "src/mepof/kernel/configs/kload.config").read_text().splitlines()
    assert f"CONFIG_BLK_DEV_RAM_SIZE={MEBIBYTES << 10}" in lines
    assert f"BLK_DEV_RAM_SIZE >= {MEBIBYTES << 10}" in (KERNEL / "Kconfig").read_text()


def test_the_table_is_a_valid_ext4_with_a_journal(tmp_path: Path) -> None:
    check = Path("/sbin/e2fsck")
    if not check.is_file():
        pytest.skip("e2fsprogs is not installed")
    disk = tmp_path / "disk"
    content = image(TABLE.read_text())
    disk.write_bytes(content)
    assert run([check, "-n", "-f", disk], check=False).status == 0
    # The check can fail: in the root's inode, of which there is a checksum.
    first = content.index(b"lost+found")
    disk.write_bytes(content[:first] + b"found+lost" + content[first + 10 :])
    assert run([check, "-n", "-f", disk], check=False).status != 0


def test_the_table_is_what_mke2fs_makes(tmp_path: Path) -> None:
    """Regenerate with ``python tests/unit/native/kload_blocks.py``."""
    try:
        tool = ext4.identity()["mke2fs"]
    except EnvironmentLack as lack:
        pytest.skip(f"{lack}: {lack.remedy}")
    if tool not in TABLE.read_text():
        pytest.skip(f"the table is of another release than {tool}")
    assert table(tmp_path) == TABLE.read_text()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernel's cases of files, with a header that stands in for the kernel's."""
    out = tmp_path_factory.mktemp("files")
    sources = [KERNEL / "files.c", KERNEL / "disk.c"]
    for source in (*sources, KERNEL / "kload.h"):
        for name in re.findall(r"^#include <(.*)>", source.read_text(), re.M):
            (out / "include" / name).parent.mkdir(parents=True, exist_ok=True)
            (out / "include" / name).write_text('#include "kernel.h"\n')
    checks = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover"]
    where = [f"-iquote{HERE}", f"-iquote{KERNEL}"]
    objects = []
    for source in (*sources, HERE / "run.c"):
        # The stand-ins include the C library's headers, which must not be given them in turn.
        kernel = ["-I", str(out / "include")] if source in sources else []
        objects.append(str(out / f"{source.stem}.o"))
        words = ["gcc", "-Wall", *checks, "-DCONFIG_KLOAD_DISK", *where, *kernel, "-c"]
        subprocess.run([*words, source, "-o", objects[-1]], check=True, timeout=60)
    linked = ["gcc", *checks, *objects, "-o", str(out / "run")]
    subprocess.run(linked, check=True, timeout=60)
    return out / "run"


def results(program: Path, directory: Path, **environment: str) -> dict[str, int]:
    done = run([program, str(MEBIBYTES)], cwd=directory, env=environment)
    return {name: int(number) for name, number in map(str.split, done.output.splitlines())}


def test_each_case_of_files_leaves_what_it_should(program: Path, tmp_path: Path) -> None:
    found = results(program, tmp_path)
    assert [case for case in CASES if case in found] == [*found]
    assert min(found.values()) >= 0
    for size in ("1k", "16k"):
        for what in ("read", "write"):
            assert found[f"ext4-{what}-{size}"] == found[f"{what}-{size}"] > 0
    assert len({found[f"write-{size}"] for size in ("64", "1k", "16k")}) == 3
    # What was laid out before the first case is the table.
    assert (tmp_path / "kload/disk").read_bytes() == image(TABLE.read_text())


@pytest.mark.parametrize(
    "case",
    ["read-64", "write-64", "write-1k", "write-16k", "ext4-read-device", "ext4-fsync"],
)
def test_a_case_of_files_notices_a_wrong_byte(program: Path, tmp_path: Path, case: str) -> None:
    found = results(program, tmp_path, FLIP=case)
    assert found.pop(case) == -errno.EBADMSG
    assert min(found.values()) >= 0


def test_a_disk_that_is_too_small_is_an_error(program: Path, tmp_path: Path) -> None:
    done = run([program, str(MEBIBYTES - 1)], cwd=tmp_path, check=False)
    assert (done.status, done.output.split()) == (1, ["init", str(-errno.ENOSPC)])


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The suite's program on a kernel that has none of its cases."""
    out = tmp_path_factory.mktemp("kload")
    common = ["gcc", "-Wall", "-Wextra", "-Werror", *ABI_FLAGS]
    shared = [f"{NATIVE}/suites/{name}.c" for name in ("case", "main")]
    stand_in = ["-Dopen=kernel_open", "-Dwrite=kernel_write", "-include", "unistd.h"]
    for words in (
        [*common, *stand_in, "-include", "fcntl.h", "-c", f"{NATIVE}/suites/kload/kload.c"],
        [*common, "-c", f"{HERE}/without.c"],
        [*common, "-pthread", *shared, "kload.o", "without.o", "-o", "kload"],
    ):
        subprocess.run(words, cwd=out, check=True, timeout=60)
    return out / "kload"


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("ext4-")])
def test_a_case_of_ext4_is_left_out_where_the_kernel_does_not_have_it(
    without: Path, case: str
) -> None:
    done = run([without, case], check=False)
    assert done.status == 77
    assert done.output.split() == [f"case={case}", "check=unsupported", "needs=CONFIG_KLOAD_DISK"]


def test_any_other_case_that_is_missing_is_a_failure(without: Path) -> None:
    done = run([without, "lookup"], check=False)
    assert done.status == 1
    assert "check=failed" in done.output
