"""Branch traces that a user compressed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.process import Completed
from mepof.profile import traces
from mepof.profile.traces import decompressed

TEXT = b"PERFILE2" * 1000


def zstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout


PROGRAMS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstd,
}


@pytest.mark.parametrize("suffix", PROGRAMS)
def test_a_compressed_trace_is_read_from_a_temporary_file(tmp_path: Path, suffix: str) -> None:
    packed, plain = tmp_path / f"perf.data.{suffix}", tmp_path / "perf.data"
    packed.write_bytes(PROGRAMS[suffix](TEXT))
    plain.write_bytes(TEXT)
    before = packed.read_bytes()
    with decompressed([packed, plain]) as (made, same):
        assert made.read_bytes() == TEXT
        assert same == plain
    assert not made.exists()
    assert packed.read_bytes() == before


@pytest.mark.parametrize("suffix", PROGRAMS)
def test_a_damaged_one_is_an_error(tmp_path: Path, suffix: str) -> None:
    packed = tmp_path / f"perf.data.{suffix}"
    packed.write_bytes(PROGRAMS[suffix](TEXT)[:-9])
    with (
        pytest.raises(InputError, match="cannot be decompressed") as raised,
        decompressed([packed]),
    ):
        pass
    assert raised.value.message.startswith(str(packed))
    assert "\n" not in raised.value.message


def test_errors_name_what_was_given(tmp_path: Path) -> None:
    packed = tmp_path / "perf.data.gz"
    packed.write_bytes(gzip.compress(TEXT))
    with pytest.raises(InputError) as raised, decompressed([packed]) as (made,):
        raise InputError(f"{made}: no samples", "record again")
    assert raised.value.message == f"{packed}: no samples"


def test_what_is_no_file_is_left_as_it_is(tmp_path: Path) -> None:
    with decompressed([tmp_path, tmp_path / "missing"]) as files:
        assert files == [tmp_path, tmp_path / "missing"]


def test_a_full_disk_is_not_called_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "perf.data.zst"
    packed.write_bytes(zstd(TEXT))
    said = "zstd: error 70 : Write error : cannot write block : No space left on device"
    monkeypatch.setattr(traces, "run", lambda *argv, **how: Completed((), 1, said))
    with (
        pytest.raises(WorkError, match="No space left on device") as raised,
        decompressed([packed]),
    ):
        pass
    assert raised.value.remedy == "set TMPDIR to a directory with more space"


def test_zstd_has_to_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "perf.data.zst"
    packed.write_bytes(zstd(TEXT))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(EnvironmentLack, match="zstd is not installed"), decompressed([packed]):
        pass
