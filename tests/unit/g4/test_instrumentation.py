"""``set instrument`` and ``set hotness``: what they choose, and what cannot be chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mepof.g4.compiler import compile_program
from mepof.g4.instrumentation import EVERYTHING, Instrumentation, instrumentation
from mepof.plan.model import HostInput, Plan

from .planning import VARIANTS, assert_well_formed, ids, made_from
from .reading import headlines, sound

OPT = "opt /src pgo rand kbench O2.\n"
RECORDING = replace(VARIANTS, recorders=frozenset({"qemu"}), interactive=frozenset({"manual"}))


def plan(text: str) -> Plan:
    return compile_program(sound(text), text, RECORDING)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("all", EVERYTHING),
        ("sched", Instrumentation(("sched",))),
        ("95%", Instrumentation(percent=95.0)),
        ("99.5%,16M", Instrumentation(percent=99.5, image_bytes=16 << 20)),
        ("900K", Instrumentation(image_bytes=900 << 10)),
        ("1GiB", Instrumentation(image_bytes=1 << 30)),
        (
            "16M,sched,kernel/fork.c,80%,drivers/gpu/,fs/*.c,sched",
            Instrumentation(("drivers/gpu/", "fs/*.c", "kernel/fork.c", "sched"), 80.0, 16 << 20),
        ),
    ],
)
def test_a_value_is_where_how_hot_and_how_large(text: str, chosen: Instrumentation) -> None:
    assert instrumentation(text) == chosen
    assert headlines(f"set instrument {text}.\n{OPT}") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0%", "expected one percentage"),
        ("101%", "expected one percentage"),
        ("50%,60%", "expected one percentage"),
        ("0M", "expected one size"),
        ("1M,2M", "expected one size"),
        ("sched,", "separate subsystems"),
        ("all,sched", "separate subsystems"),
        ("kernel/fork", "is neither a file"),
        ("/kernel/", "as a path within the kernel tree"),
        ("95 %", "has a character"),
        ("1.5M", "is neither a file"),
    ],
)
def test_a_wrong_value_says_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        instrumentation(text)
    (line,) = headlines(f'set instrument "{text}".')
    assert f"invalid instrument `{text}`" in line


def test_an_unknown_subsystem_is_pointed_at() -> None:
    assert headlines("set instrument mm,shced,95%.") == [
        "p.g4:1:19: error: unknown subsystem `shced`"
    ]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("opt /src autofdo rand kbench.", "`autofdo` records branches and instruments nothing"),
        ("opt /src pgo rand kbench ColdSmall.", "`ColdSmall` needs to know of all code"),
        ("set scout off.\nopt /src pgo rand kbench.", "`set scout off` forbids to record it"),
        ("opt /src pgo manual kbench.", "the scenario `manual` decides only later what runs"),
        ("set device phone.\nopt /src pgo rand kbench.", "the device `phone` does not record it"),
    ],
)
def test_what_cannot_be_chosen_is_an_error_before_anything_is_built(
    program: str, message: str
) -> None:
    (line,) = headlines(f"set instrument 90%.\n{program}")
    assert message in line
    assert headlines(f"set instrument all.\n{program}") == []


@pytest.mark.parametrize("click", ["manual", "rand"])
def test_an_earlier_profile_says_what_is_hot_where_nothing_records_it(click: str) -> None:
    program = f"set device phone.\nset hotness /old.afdo.\nopt /src pgo {click} kbench."
    assert headlines(f"set instrument 90%.\n{program}") == []
    # A part of the kernel needs no ranking.
    assert headlines(f"set scout off.\nset instrument mm.\nopt /src pgo {click} kbench.") == []
    again = f"{program}\nset hotness none.\nopt /src pgo rand kbench."
    (line,) = headlines(f"set instrument 90%.\n{again}")
    assert "the device `phone` does not record it" in line


def test_hotness_names_a_profile_that_is_there() -> None:
    (line,) = headlines(f"set hotness opt.\n{OPT}")
    assert "p.g4:1:13: error:" in line


def test_the_objects_are_chosen_from_what_was_recorded() -> None:
    made = plan(f"set instrument mm,95%.\nset exclude mm/slub.o.\n{OPT}")
    assert_well_formed(made)
    selected = made.step("opt/selected")
    assert selected.kind == "instrumented-objects"
    assert selected.params["places"] == ["mm"]
    assert selected.params["percent"] == 95.0
    assert selected.params["exclude"] == ["mm/slub.o"]
    assert made_from(made, selected, "kernel").id == "plain/build"
    assert made_from(made, selected, "raw").id == "opt/scout"
    assert made_from(made, selected, "executed").id == "opt/executed"
    assert made_from(made, made.step("opt/instrument"), "instrumented.scouted") == selected


def test_a_limit_is_of_the_build_and_shares_what_was_chosen() -> None:
    made = plan(
        f"set instrument 95%.\nset name a.\n{OPT}set instrument 95%,16M.\nset name b.\n{OPT}"
    )
    assert "b/selected" not in ids(made)
    assert made.step("a/instrument").params["instrumented"] == {"algorithm": "pgo"}
    limited = made.step("b/instrument").params["instrumented"]
    assert limited == {"algorithm": "pgo", "image_bytes": 16 << 20}


def test_all_rounds_instrument_what_is_chosen() -> None:
    made = plan("set instrument 8M.\nopt /src cspgo rand kbench O2.")
    for name in ("opt/instrument", "opt/instrument2"):
        assert made_from(made, made.step(name), "instrumented.scouted").id == "opt/selected"
        assert made.step(name).params["instrumented"]["image_bytes"] == 8 << 20  # type: ignore[index, call-overload]


def test_a_profile_of_the_program_or_a_file_is_read_in_place_of_a_recording() -> None:
    made = plan(
        f"set name a.\n{OPT}set hotness a.\nset instrument 50%.\nset name b.\n{OPT}"
        f"set hotness /old/kernel.afdo.\nset name c.\n{OPT}"
    )
    assert_well_formed(made)
    assert made_from(made, made.step("b/selected"), "profile").id == "a/profile"
    assert made.step("c/selected").inputs["profile"] == HostInput("/old/kernel.afdo")
    for name in ("b/selected", "c/selected"):
        assert set(made.step(name).inputs) == {"kernel", "profile"}


def test_a_part_of_the_kernel_is_chosen_without_a_recording() -> None:
    made = plan(f"set scout off.\nset instrument mm.\n{OPT}")
    assert set(made.step("opt/selected").inputs) == {"kernel"}


def test_everything_is_what_was_planned_before() -> None:
    assert plan(f"set instrument all.\nset hotness none.\n{OPT}").steps == plan(OPT).steps


def test_what_records_branches_beside_it_is_left_as_it_was() -> None:
    stack = "opt /src pgo+propeller rand kbench O2.\n"
    made = plan(f"set instrument 95%.\n{stack}")
    assert made_from(made, made.step("opt/instrument"), "instrumented.scouted").id == "opt/selected"
    assert "instrumented.scouted" not in made.step("opt/instrument2").inputs
