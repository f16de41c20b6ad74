"""The program that loads modules in a guest, against a kernel that is played."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

import pytest

from .conftest import NATIVE

# A module's file holds the error that its loading gives.
PLAYED = """
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
static long finit_module(long number, int file, const char *parameters, int flags)
{
	char text[16] = "";
	(void)number, (void)parameters, (void)flags;
	errno = read(file, text, sizeof(text) - 1) < 0 ? EIO : atoi(text);
	return errno == 0 ? 0 : -1;
}
#define syscall finit_module
"""


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("loader")
    (directory / "played.h").write_text(PLAYED)
    source = NATIVE / "modules/load.c"
    words = ["gcc", "-Wall", "-Werror", "-include", str(directory / "played.h"), str(source)]
    subprocess.run([*words, "-o", str(directory / "load")], check=True)
    return directory / "load"


def load(loader: Path, directory: Path, **modules: tuple[int, str]) -> tuple[int, list[str]]:
    """The status and the lines for modules, each with its error and what it needs."""
    for name, (error, _) in modules.items():
        (directory / f"{name}.ko").write_text(str(error))
    listed = (f"{name} {needs}".strip() for name, (_, needs) in modules.items())
    (directory / "list").write_text("".join(f"{line}\n" for line in listed))
    done = subprocess.run([loader, directory / "list"], capture_output=True, text=True, check=False)
    return done.returncode, [line for line in done.stdout.splitlines() if "section" not in line]


def test_what_a_module_needs_decides_whether_it_is_absent(loader: Path, tmp_path: Path) -> None:
    assert load(
        loader,
        tmp_path,
        xkvm=(0, ""),
        xkvm_intel=(errno.EOPNOTSUPP, "xkvm"),
        xbus=(errno.ENODEV, ""),
        xbus_storage=(errno.ENOENT, "xkvm xbus"),
        xbus_disk=(errno.ENOENT, "xbus_storage"),
        xkvm_amd=(0, "xkvm"),
    ) == (
        0,
        [
            "loaded xkvm",
            "absent xkvm_intel",
            "absent xbus",
            "absent xbus_storage",
            "absent xbus_disk",
            "loaded xkvm_amd",
        ],
    )


@pytest.mark.parametrize("error", [errno.ENOENT, errno.ENOEXEC, errno.EINVAL, errno.ENOMEM])
def test_a_module_that_is_not_sound_ends_the_program(
    loader: Path, tmp_path: Path, error: int
) -> None:
    status, lines = load(
        loader, tmp_path, xbus=(errno.ENODEV, ""), xext4=(error, ""), xlast=(0, "")
    )
    assert status == 1
    assert lines[0] == "absent xbus"
    assert lines[1].startswith("xext4: ")
    assert len(lines) == 2
