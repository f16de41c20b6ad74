from __future__ import annotations

from pathlib import Path

import pytest

from mepof.errors import InputError
from mepof.g4.source import MAX_BYTES, Source


def test_positions_count_characters_from_one() -> None:
    source = Source("p", "é\nab\n")
    assert [source.position(i) for i in (0, 1, 2, 3, 5)] == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]
    assert [source.line(n) for n in (1, 2, 3)] == ["é", "ab", ""]


def test_a_program_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "p.g4"
    path.write_bytes(b"set seed 1.\n")
    assert Source.read(path) == Source(str(path), "set seed 1.\n")


def test_an_unreadable_program_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the program .* does not exist"):
        Source.read(tmp_path / "none.g4")
    with pytest.raises(InputError, match="cannot read"):
        Source.read(tmp_path)
    with pytest.raises(InputError, match="cannot read"):
        Source.read(Path("a\0b"))
    with pytest.raises(InputError, match="cannot read"):
        Source.read(Path("x" * 10_000))


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "vmlinux"
    path.write_bytes(bytes(MAX_BYTES + 1))
    with pytest.raises(InputError, match="not a G4 program"):
        Source.read(path)
