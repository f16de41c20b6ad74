"""Locations of events: from the plugin's blocks and pages to functions and a heatmap."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from mepof.errors import InputError, WorkError
from mepof.pmu.events import EVENTS
from mepof.pmu.locations import (
    Function,
    functions_of,
    locations_of,
    read_locations,
    read_raw,
)

NAMES = ("taken_branches", *EVENTS)
TEXT = 0xFFFFFFFF81000000
FUNCTIONS = (Function(TEXT, 0x100, "first"), Function(TEXT + 0x100, 0x40, "second"))
CASES = (("kbench", "one"), ("kbench", "two"))


def site(start: int, size: int, executions: int, **events: int) -> list[int]:
    return [start, start + 4 * size, size, executions, *(events.get(name, 0) for name in NAMES)]


def write(path: Path, *lines: object, version: int = 1) -> Path:
    head = {"version": version, "events": NAMES}
    path.write_text("".join(json.dumps(line) + "\n" for line in (head, *lines)))
    return path


LINE = {
    "sites": [
        site(TEXT + 0x20, 3, 10, taken_branches=4, execution_cycles=60),
        site(TEXT + 0x100, 2, 1000, l1i_misses=7, data_cycles=900),
        site(TEXT + 0xF0, 5, 2, btb_misses=1, fetch_cycles=5),
        site(TEXT + 0x140, 1, 1),
    ],
    "slices": [[[TEXT >> 12, 30]], [], [[TEXT >> 12, 5], [(TEXT >> 12) + 9, 1]]],
}
EMPTY: dict[str, list[object]] = {"sites": [], "slices": []}


def test_blocks_become_functions_with_the_most_expensive_first(tmp_path: Path) -> None:
    raw = read_raw(write(tmp_path / "raw", LINE, EMPTY))
    one, two = locations_of("zen4", CASES, raw, FUNCTIONS).cases
    assert (one.case, two.case) == ("one", "two")
    assert (two.functions, two.heatmap.rows) == ((), ())
    assert [f.name for f in one.functions] == ["second", "first", "[unknown]"]
    second, first, unknown = one.functions
    assert (second.address, second.instructions) == (TEXT + 0x100, 2000)
    assert second.events == {"l1i_misses": 7, "data_cycles": 900}
    assert (first.instructions, unknown.instructions) == (40, 1)
    assert first.events == {
        "taken_branches": 4,
        "btb_misses": 1,
        "execution_cycles": 60,
        "fetch_cycles": 5,
    }
    assert [f.cycles for f in one.functions] == [900, 60 + 5, 0]


def test_without_symbols_code_has_only_its_address(tmp_path: Path) -> None:
    raw = read_raw(write(tmp_path / "raw", LINE, EMPTY))
    (only,) = locations_of("zen4", CASES, raw, ()).cases[0].functions
    assert (only.name, only.address, only.instructions) == ("[unknown]", TEXT + 0x20, 2041)


def test_the_heatmap_names_each_page_once(tmp_path: Path) -> None:
    raw = read_raw(write(tmp_path / "raw", LINE, EMPTY))
    heatmap = locations_of("zen4", CASES, raw, ()).cases[0].heatmap
    assert heatmap.pages == (TEXT >> 12, (TEXT >> 12) + 9)
    assert heatmap.rows == (((0, 30),), (), ((0, 5), (1, 1)))


def test_a_case_without_an_interval_is_an_error(tmp_path: Path) -> None:
    raw = read_raw(write(tmp_path / "raw", LINE))
    with pytest.raises(WorkError, match="2 cases ran but 1 intervals have event locations"):
        locations_of("zen4", CASES, raw, ())


@pytest.mark.parametrize(
    "text", ["", "{}\n", '{"version":1,"events":["a"]}\n{"sites":[[1,2,3,4]],"slices":[]}\n', "x\n"]
)
def test_a_file_of_another_format_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "raw"
    path.write_text(text)
    with pytest.raises(WorkError, match="is not a list of event locations") as raised:
        read_raw(path)
    assert "\n" not in str(raised.value)


def test_another_version_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="unknown version or columns"):
        read_raw(write(tmp_path / "raw", version=2))


def test_locations_can_be_written_and_read(tmp_path: Path) -> None:
    raw = read_raw(write(tmp_path / "raw", LINE, EMPTY))
    locations = locations_of("zen4", CASES, raw, FUNCTIONS)
    path = tmp_path / "places.json"
    path.write_text(locations.to_json())
    assert read_locations(path) == locations
    path.write_text("{}")
    with pytest.raises(InputError, match="is not a list of event locations"):
        read_locations(path)


def test_a_bare_image_has_no_functions(tmp_path: Path) -> None:
    assert functions_of(tmp_path / "image") == ()
    (tmp_path / "vmlinux").write_bytes(b"no kernel")
    with pytest.raises(WorkError, match="cannot be read as a kernel"):
        functions_of(tmp_path)


@pytest.mark.parametrize("bits", [32, 64])
def test_functions_are_read_of_kernels_for_32_and_64_bits(tmp_path: Path, bits: int) -> None:
    source = tmp_path / "kernel.c"
    source.write_text("int first(void) { return 1; }\nint second(void) { return 2; }\nint data;\n")
    command = ["gcc", f"-m{bits}", "-O2", "-c", str(source), "-o", f"{tmp_path}/vmlinux"]
    subprocess.run(command, check=True)
    first, second = functions_of(tmp_path)
    assert (first.name, second.name) == ("first", "second")
    assert 0 == first.address < first.size <= second.address
