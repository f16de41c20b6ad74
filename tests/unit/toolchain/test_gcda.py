"""GCC's files of counts: reading, adding up, and what is not one."""

from __future__ import annotations

import struct
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mepof.errors import InputError
from mepof.toolchain import gcda
from mepof.toolchain.gcda import Counts, Function

VERSION = int.from_bytes(b"B22*", "big")
RAN = Function((1, 2, 3), {0: (5, 0, 7), 3: (12, 2, 48, 10, 100, 2), 6: (0b101,), 7: (9,)})
IDLE = Function((4, 5, 6), {0: (0, 0), 7: (0,)})


def counts(*functions: Function) -> Counts:
    return Counts(VERSION, (11, 12), 1, functions)


def test_a_file_reads_as_it_was_written() -> None:
    given_counts = counts(RAN, IDLE)
    data = gcda.serialize(given_counts, given_counts.max_arc)
    assert gcda.parse(data, "f") == given_counts
    assert (given_counts.major, given_counts.executed, given_counts.max_arc) == (12, 1, 7)


def test_a_sum_is_weighted_by_the_kind_of_counter() -> None:
    other = Function((1, 2, 3), {0: (1, 1, 0), 3: (4, 2, 48, 1, 7, 3), 6: (0b10,), 7: (4,)})
    total = gcda.add([({"a.o": counts(RAN)}, 2), ({"a.o": counts(other), "b.o": counts(IDLE)}, 1)])
    assert list(total) == ["a.o", "b.o"]
    (summed,) = total["a.o"].functions
    assert summed.counters == {
        0: (11, 1, 14),
        3: (28, 3, 48, 21, 100, 4, 7, 3),
        6: (0b111,),
        7: (4,),  # the first run of the earlier one
    }
    assert total["a.o"].runs == 2


def test_a_site_keeps_the_most_frequent_values_and_says_that_it_dropped_some() -> None:
    def site(first: int) -> Function:
        values = tuple(n for value in range(first, first + 20) for n in (value, value))
        return Function((1, 2, 3), {4: (1000, 20, *values)})

    total = gcda.add([({"a.o": counts(site(1))}, 1), ({"a.o": counts(site(101))}, 1)])
    sum_total, number, *pairs = total["a.o"].functions[0].counters[4]
    assert (sum_total, number, len(pairs)) == (-2000, 32, 64)
    assert min(pairs[1::2]) == 9


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=9), st.integers(1, 9))
def test_a_weight_is_as_many_times_the_same_profile(arcs: list[int], weight: int) -> None:
    archive = {"a.o": counts(Function((1, 2, 3), {0: tuple(arcs)}))}
    once = gcda.add([(archive, weight)])["a.o"].functions
    assert once == gcda.add([(archive, 1)] * weight)["a.o"].functions


def test_a_sum_that_no_file_can_hold_is_halved_until_it_fits() -> None:
    frequent = Function((1, 2, 3), {0: (2**40, 2**20, 0), 3: (-(2**41), 1, 48, 2**40)})
    rare = Function((1, 2, 3), {0: (2**39, 0, 2**20), 3: (2**39, 1, 48, 2**39)})
    archives = [({"a.o": counts(frequent)}, 10**12), ({"a.o": counts(rare)}, 5 * 10**11)]
    (total,) = gcda.add(archives)["a.o"].functions
    arcs, values = total.counters[0], total.counters[3]
    assert arcs[0] == pytest.approx(1.25 * 2**20 * arcs[1]) and arcs[1] == 2 * arcs[2]
    assert values[0] < 0 and values[3] == arcs[0]
    written = gcda.serialize(counts(total), max(arcs))
    assert gcda.parse(written, "f").functions == (total,)


def test_only_counts_are_halved_and_for_large_counts_alone() -> None:
    """A value may be as large as an address."""
    one = Function((1, 2, 3), {0: (3,), 3: (3, 1, -(2**62), 3), 6: (2**62,)})
    (total,) = gcda.add([({"a.o": counts(one)}, 1), ({"a.o": counts(one)}, 2)])["a.o"].functions
    assert total.counters == {0: (9,), 3: (9, 1, -(2**62), 9), 6: (2**62,)}


@pytest.mark.parametrize(
    "other",
    [
        counts(Function((1, 2, 99), RAN.counters)),
        counts(RAN, IDLE),
        Counts(VERSION, (99, 12), 1, (RAN,)),
    ],
)
def test_counts_of_different_builds_are_not_added(other: Counts) -> None:
    with pytest.raises(InputError, match=r"counts of a\.o are of different builds"):
        gcda.add([({"a.o": counts(RAN)}, 1), ({"a.o": other}, 1)])


def test_links_beside_the_counts_are_passed_over(tmp_path: Path) -> None:
    gcda.write_archive({"fs/a.o": counts(RAN)}, tmp_path / "archive")
    with tarfile.open(tmp_path / "archive", "a") as archive:
        link = tarfile.TarInfo("fs/a.gcno")
        link.type, link.linkname = tarfile.SYMTYPE, "/build/fs/a.gcno"
        archive.addfile(link)
    assert gcda.read_archive(tmp_path / "archive").keys() == {"fs/a.o"}


def test_an_archive_has_the_same_bytes_for_the_same_counts(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    gcda.write_archive({"fs/a.o": counts(RAN), "b.o": counts(IDLE)}, one)
    gcda.write_archive({"b.o": counts(IDLE), "fs/a.o": counts(RAN)}, other)
    assert one.read_bytes() == other.read_bytes()
    with tarfile.open(one) as archive:
        assert archive.getnames() == ["b.gcda", "fs/a.gcda"]
    # What is hot is decided by the largest count of the program, whichever file has it.
    assert {c.max_arc for c in gcda.read_archive(one).values()} == {7, 0}
    with tarfile.open(one) as archive:
        file = archive.extractfile("b.gcda")
        assert file is not None and file.read()[28:32] == (7).to_bytes(4, "little")


GOOD = gcda.serialize(counts(RAN, IDLE), 7)
GCC_11 = int.from_bytes(b"B13*", "big")


def test_gcc_11_has_lengths_in_words_and_no_checksum() -> None:
    function = Function((1, 2, 3), {0: (5,), 7: (0,)})
    given_counts = Counts(GCC_11, (11,), 1, (function,))
    data = gcda.serialize(given_counts, 5)
    words = [0x67636461, GCC_11, 11, 0xA1000000, 2, 1, 5, 0x01000000, 3, 1, 2, 3]
    words += [0x01A10000, 2, 5, 0, 0x01AF0000, 2**32 - 2, 0]
    assert data == struct.pack("<19I", *words)
    assert gcda.parse(data, "f") == given_counts


def test_a_kernel_counted_by_gcc_11_writes_as_for_later_versions() -> None:
    written = gcda.serialize(counts(RAN, IDLE), 7)
    read = gcda.parse(written[:4] + GCC_11.to_bytes(4, "little") + written[8:], "f")
    assert read == Counts(GCC_11, (11,), 1, (RAN, IDLE))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is damaged"),
        (b"\0" * 64, "is not a file of GCC's counts"),
        (b"gcda" + GOOD[4:], "is not a file of GCC's counts"),
        (GOOD[:4] + b"????" + GOOD[8:], "is not a file of GCC's counts"),
        (GOOD[:4] + b"*20B" + GOOD[8:], "is of GCC 10"),
        (GOOD[:-60], "is cut off"),
        (GOOD[:38], "is damaged"),
        (
            gcda.serialize(counts(Function((1, 2, 3), {4: (9, 2, 1, 5, 2)})), 7),
            "is damaged: values",
        ),
        (gcda.serialize(counts(Function((1, 2, 3), {3: (9, -1)})), 7), "is damaged: values"),
    ],
)
def test_a_damaged_file_is_refused_with_its_name(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=f"the file {message}"):
        gcda.parse(data, "the file")


@given(st.binary(max_size=64), st.integers(0, len(GOOD)))
def test_any_bytes_are_read_or_refused(noise: bytes, at: int) -> None:
    for data in (noise, GOOD[:at] + noise, GOOD[:at] + noise + GOOD[at + len(noise) :]):
        try:
            parsed = gcda.parse(data, "f")
            gcda.add([({"a.o": parsed}, 3), ({"a.o": parsed}, 1)])
        except InputError:
            continue


@pytest.mark.parametrize("content", [b"", b"text", b"\0" * 2000, b"x" * 2000])
def test_what_is_not_an_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "counts"
    path.write_bytes(content)
    if content.strip(b"\0"):
        with pytest.raises(InputError, match="is not an archive of GCC's counts"):
            gcda.read_archive(path)
    with pytest.raises(InputError, match="cannot be read"):
        gcda.read_archive(tmp_path / "absent")
