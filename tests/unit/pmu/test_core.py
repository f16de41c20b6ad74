"""Cores: their descriptions, and the settings of the plugin for them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from mepof.described import read_described
from mepof.errors import InputError
from mepof.pmu.core import Core, core_names, load_core
from mepof.pmu.events import CYCLES, EVENTS, cycles_of
from mepof.pmu.settings import core_digest, price_digest, settings_of

CORES = Path(__file__).parents[3] / "src/mepof/pmu/cores"
EVENT_LIST = Path(__file__).parents[3] / "native/pmu/events.h"


@pytest.mark.parametrize("name", core_names())
def test_every_core_is_sound_and_names_its_sources(name: str) -> None:
    assert load_core(name).title
    described = tomllib.loads((CORES / f"{name}.toml").read_text())
    tables = [t for t in described.values() if isinstance(t, dict) and "misprediction" not in t]
    assert all(len(table["source"]) > 7 for table in [*tables, *described["cost"].values()])


def test_six_cores_come_with_mepof() -> None:
    arm = dict.fromkeys(["cortex-a53", "cortex-a57", "cortex-a76", "cortex-x1"], "arm64")
    expected = {**arm, "skylake": "x86-64", "zen4": "x86-64"}
    assert {name: load_core(name).arch for name in expected} == expected


def test_an_unknown_core_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(InputError, match=r"unknown core `zen5` \(known: .*zen4"):
        load_core("zen5")


def test_settings_have_sets_and_ways() -> None:
    words = settings_of(load_core("zen4"))
    assert {"line=64", "l1i=64:8", "l2=2048:8", "dtlb=1:72", "l2-dtlb=128:24"} <= set(words)
    assert {"btb=1024:7", "returns=32", "kernel-text-page=21", "kernel-data-page=21"} <= set(words)
    assert "direction=14:14:5:13:34:89:200" in words
    # Linux maps the linear map of arm64 by pages, and a unified second level is one table.
    others = settings_of(load_core("cortex-a76"))
    assert "kernel-data-page=12" in others
    assert not any(word.startswith("l2-dtlb=") for word in others)


def test_settings_have_costs_and_the_scheduling_model() -> None:
    words = settings_of(load_core("zen4"))
    assert {"cpu=znver4", "fetch-bytes=64", "misprediction=14", "l1i-miss=14"} <= set(words)


def test_settings_that_a_core_omits_have_defaults() -> None:
    zen4, skylake = settings_of(load_core("zen4")), settings_of(load_core("skylake"))
    assert {"fetch-split=1", "fetch-free=1", "renamed-forwarding=1"} <= set(zen4)
    assert {"fetch-split=0", "forwarding=4", "blocked-forwarding=14"} <= set(skylake)
    assert not any(word.startswith("renamed-forwarding=") for word in skylake)
    assert {"forwarding=8", "blocked-forwarding=8"} <= set(settings_of(load_core("cortex-a76")))


def test_events_are_those_of_the_plugin() -> None:
    events = re.findall(r"^\tEVENT\((\w+)\)", EVENT_LIST.read_text(), re.M)
    assert events == ["taken_branches", *EVENTS]


def test_cycles_are_attributed_to_causes() -> None:
    events = {name: number for number, name in enumerate(EVENTS)}
    cycles = cycles_of(events)
    assert cycles["fetching"] == events["fetch_cycles"]
    assert sum(cycles.values()) == sum(events[name] for name in CYCLES)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            "entries = 72",
            "entries = 70",
            "`dtlb`: 70 entries / 72 ways is not a power of two",
        ),
        ("base = 16384", "base = 16000", "`direction`: 16000 entries are not a power of two"),
        ("[5, 13, 34, 89, 200]", "[5, 13, 13]", "`direction`: histories must increase"),
        ("[5, 13, 34, 89, 200]", "[5, 256]", "`direction`: histories must increase"),
        ("[2, 5, 10, 18]", "[2, 5, 22]", "`indirect`: histories must increase"),
        ("depth = 32", "depth = -1", "`returns.depth` must be greater than or equal to 0"),
        (
            "cycles = 36",
            "cycles = 3600",
            "`cost.l2_code_miss.cycles` must be less than or equal to 1000",
        ),
        ("fetch_bytes = 64", "fetch_bytes = 48", "`pipeline.fetch_bytes`: 48 bytes is not a power"),
        (
            "decode_bytes = 32",
            "decode_bytes = 33",
            "`op_cache.decode_bytes`: 33 bytes is not",
        ),
        ('cpu = "znver4"', 'cpu = "a,b"', "`pipeline.cpu` must match pattern"),
        ("line = 64", "line = 64\nlines = 3", r":7: unknown key `lines` \(did you mean `line`"),
        ('arch = "x86-64"', 'arch = "vax"', "unknown architecture `vax`"),
        ('"EPYC-Genoa"', '"a,b"', "`emulated` must match pattern"),
        ("[l2]", "[l2", "is not TOML"),
        (
            "[cost.path_target]",
            "[cost.system_call]\ncycles = -1\nsource = 'measured'\n[cost.path_target]",
            "`cost.system_call.cycles` must be greater than or equal to 0",
        ),
        (
            "[cost.path_target]",
            "[cost.interrupt]\ncycles = 700\n[cost.path_target]",
            "`source` is missing from `cost.interrupt`",
        ),
        (
            "[cost.path_target]",
            "[cost.sysret]\ncycles = 7\nsource = 'measured'\n[cost.path_target]",
            "unknown key `sysret`",
        ),
        ('source = "SOG, L2 cache"', "", ":18: `source` is missing from `l2`"),
    ],
)
def test_a_wrong_core_is_one_line(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    text = (CORES / "zen4.toml").read_text()
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=complaint) as raised:
        read_described(path, Core, "core")
    assert "\n" not in str(raised.value)


def test_a_missing_core_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_described(tmp_path / "none.toml", Core, "core")


def test_cores_have_different_digests() -> None:
    assert len({core_digest(name) for name in core_names()}) == len(core_names())


def described(directory: Path, old: str, new: str) -> str:
    """The path of a description like Skylake's."""
    text = (CORES / "skylake.toml").read_text()
    assert text.count(old) == 1
    path = directory / "mine.toml"
    path.write_text(text.replace(old, new))
    return str(path)


def test_entering_and_leaving_the_kernel_cost_only_where_a_core_says_so(tmp_path: Path) -> None:
    words = settings_of(load_core("skylake"))
    costs = {"system-call=82", "system-return=75", "swap-base=26"}
    assert {*costs, "interrupt=715", "interrupt-return=330"} <= set(words)
    other = described(tmp_path, "[cost.swap_base]\ncycles = 26\n", "[cost.swap_base]\ncycles = 0\n")
    assert core_digest(other) != core_digest("skylake")
    assert not any(word.startswith("system-call=") for word in settings_of(load_core("zen4")))


def test_the_price_of_string_instructions_does_not_depend_on_how_the_kernel_is_entered(
    tmp_path: Path,
) -> None:
    other = described(tmp_path, "cycles = 82", "cycles = 83")
    assert price_digest(other) == price_digest("skylake") != core_digest("skylake")
    slower = described(tmp_path, "repeat_start = 35", "repeat_start = 36")
    assert price_digest(slower) != price_digest("skylake")
