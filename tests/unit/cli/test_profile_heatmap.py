"""``mepof profile heatmap``."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from writers.perf_script import Entry, sample

from .profiles import done, failed, run


def test_a_heatmap_does_not_replace_its_trace(program: Path, record: Path, tmp_path: Path) -> None:
    trace = tmp_path / "perf.json"
    shutil.copy(record, trace)
    words = ("heatmap", "--binary", program, "--input", trace, "--space", "user", "-o", trace)
    assert failed(*words).message == f"{trace} would be overwritten"


def test_a_heatmap_takes_one_input(program: Path, record: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    shutil.copy(record, other)
    words = ("heatmap", "--binary", program, "--input", record, "--input", other)
    assert "takes one input" in failed(*words, "-o", tmp_path / "heat.png").message


@pytest.mark.parametrize("suffix", ["png", "svg", "json"])
def test_a_heatmap_has_the_samples_of_the_record(
    program: Path, record: Path, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"heat.{suffix}"
    document = done(
        *("heatmap", "--binary", program, "--input", record, "--space", "user", "-o", out)
    )
    assert document["functions"][0]["name"] == "hot"
    assert document["time"] is not None
    head = {"png": b"\x89PNG", "svg": b"<svg", "json": b"{"}[suffix]
    assert out.read_bytes().startswith(head)


def of_another_build(record: Path, copy: Path, moved: int = 0) -> Path:
    """A copy of a record, of a program with another build-id, `moved` by so many bytes."""
    first, *samples = record.read_text().splitlines(keepends=True)
    found = re.search(r"\[(\w+)\((\w+)\) @ (\w+)\]: x (.*)", first)
    assert found is not None
    start, size, offset, name = found.groups()
    build_id = "ab" * 20
    where = f"[{int(start, 16) + moved:#x}({size}) @ {offset} <{build_id}>]"
    copy.write_text(f"PERF_RECORD_MMAP2 7/7: {where}: r-xp {name}\n" + "".join(samples))
    return copy


def test_a_heatmap_of_another_build_says_so(program: Path, record: Path, tmp_path: Path) -> None:
    other = of_another_build(record, tmp_path / "perf.txt")
    words = ("heatmap", "--binary", program, "--space", "user", "-o", tmp_path / "heat.svg")
    assert done(*words, "--input", record)["doubt"] is None
    assert "is not the one that ran" in done(*words, "--input", other)["doubt"]
    assert "doubt" in run(*words, "--input", other).stderr


def test_a_heatmap_of_branches_that_the_code_does_not_have_says_so(
    program: Path, loop: tuple[int, int], record: Path, tmp_path: Path
) -> None:
    # Without a build-id: most branches come from an instruction that is none.
    first, *_ = record.read_text().splitlines(keepends=True)
    other = tmp_path / "perf.txt"
    other.write_text(first + sample(loop[1], [Entry(loop[1], loop[1])] * 4 + [Entry(*loop)]) * 9)
    words = ("heatmap", "--binary", program, "--space", "user", "-o", tmp_path / "heat.svg")
    doubt = done(*words, "--input", other)["doubt"]
    assert doubt.startswith("80 % of the recorded branches come from instructions that are not")


def test_a_heatmap_of_nothing_but_other_code_is_refused(
    program: Path, record: Path, tmp_path: Path
) -> None:
    other = of_another_build(record, tmp_path / "perf.txt", moved=1 << 20)
    out = tmp_path / "heat.svg"
    words = ("heatmap", "--binary", program, "--input", other, "--space", "user", "-o", out)
    assert "is not the one that ran" in failed(*words).message
    assert not out.exists()


def test_a_picture_of_another_kind_is_refused(program: Path, record: Path) -> None:
    error = failed("heatmap", "--binary", program, "--input", record, "-o", "heat.gif")
    assert ".png" in (error.remedy or "")


def test_a_program_that_ran_where_it_was_linked_needs_no_mapping(
    program: Path, record: Path, tmp_path: Path
) -> None:
    _, *samples = record.read_text().splitlines(keepends=True)
    bare = tmp_path / "perf.txt"
    bare.write_text("".join(samples))
    words = ("--binary", program, "--space", "user", "-o", tmp_path / "heat.svg")
    document = done("heatmap", *words, "--input", bare)
    assert document["functions"][0]["name"] == "hot"
    assert "--show-mmap-events" in document["doubt"]
