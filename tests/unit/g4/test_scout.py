"""Plans that record the plain kernel before they instrument what runs of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mepof.g4.compiler import compile_program
from mepof.plan.model import HostInput, Plan

from .planning import VARIANTS, assert_well_formed, ids, made_from
from .planning import plan as plan_without
from .reading import sound

RECORDING = replace(
    VARIANTS,
    recorders=frozenset({"qemu"}),
    interactive=frozenset({"manual"}),
    whole=frozenset({"ColdSmall"}),
    arguments={"rand": "weight", "script": "script", "trav": "none"},
)


def plan(text: str, *perf_data: str) -> Plan:
    return compile_program(sound(text), text, RECORDING, perf_data)


def test_the_plain_kernel_is_recorded_before_another_one_is_instrumented() -> None:
    made = plan("opt /src pgo rand kbench O2.\neval plain;opt.")
    assert_well_formed(made)
    assert [i for i in ids(made) if "build" in i or i.startswith("opt/")] == [
        *("plain/build", "opt/scout", "opt/executed", "opt/instrument", "opt/collect"),
        *("opt/profile", "opt/build"),
    ]
    instrumented, scout = made.step("opt/instrument"), made.step("opt/scout")
    assert made_from(made, instrumented, "instrumented.scouted").id == "opt/executed"
    assert made_from(made, made.step("opt/executed"), "raw") == scout
    assert made_from(made, scout, "kernel").id == "plain/build"
    assert "algorithm" not in scout.params
    assert scout.params["record"] == {"depth": 32}  # every branch
    # What is converted is what the instrumented kernel counted.
    assert made_from(made, made.step("opt/profile"), "raw").id == "opt/collect"
    assert made_from(made, made.step("measure"), "images.0").id == "plain/build"


@pytest.mark.parametrize("change", ["set seed 7.", "set actions 90.", "set period 99."])
def test_another_training_of_the_same_apps_profiles_the_same_kernel(change: str) -> None:
    opt = "opt /src pgo rand kbench O2.\n"
    made = plan(f"set name one.\n{opt}{change}\nset name two.\n{opt}")
    assert sum(i.endswith("/instrument") for i in ids(made)) == 1
    made = plan(f"set name one.\n{opt}set name two.\nopt /src pgo trav kbench O2.")
    assert sum(i.endswith("/instrument") for i in ids(made)) == 1


def test_a_script_is_scouted_by_its_own_actions() -> None:
    made = plan("opt /src pgo script kbench:/list.txt O2.")
    scout, collect = made.step("opt/scout"), made.step("opt/collect")
    assert scout.params["scenario"] == "script"
    assert (
        scout.inputs["apps.0.script"] == collect.inputs["apps.0.script"] == HostInput("/list.txt")
    )
    assert plan("opt /src pgo rand kbench:3 O2.").step("opt/scout").params["scenario"] == "trav"


def test_all_rounds_of_an_algorithm_instrument_what_ran() -> None:
    made = plan("opt /src cspgo rand kbench O2.")
    for name in ("opt/instrument", "opt/instrument2"):
        assert made_from(made, made.step(name), "instrumented.scouted").id == "opt/executed"
    stack = plan("opt /src autofdo+propeller rand kbench O2.")
    assert "instrumented.scouted" not in stack.step("opt/instrument2").inputs


@pytest.mark.parametrize(
    "program",
    [
        "set scout off.\nopt /src pgo rand kbench O2.",
        "opt /src pgo rand kbench O2;ColdSmall.",
        "opt /src pgo manual kbench O2.",
        "opt /src propeller rand kbench O2.",
        "set perf-data a.data.\nopt /src autofdo rand kbench O2.",
        "set base /old/kernel.afdo.\nopt /src autofdo rand kbench O2.",
    ],
)
def test_where_nothing_can_be_scouted_the_whole_kernel_is_instrumented(program: str) -> None:
    assert plan(program).steps == plan_without(program).steps


def test_branches_of_a_real_machine_are_of_the_kernel_without_a_scout() -> None:
    opt = "opt /src autofdo rand kbench O2."
    built, recorded = plan(f"set scout off.\n{opt}"), plan(opt, "perf.data")
    assert built.step("opt/instrument") == recorded.step("opt/instrument")
    assert built.step("opt/instrument") != plan(opt).step("opt/instrument")


def test_the_scout_has_as_many_cpus_as_the_training() -> None:
    made = plan("set cpus 2.\nopt /src pgo rand kbench O2.")
    assert made.step("opt/scout").params["cpus"] == made.step("opt/collect").params["cpus"] == 2


def test_a_device_that_records_nothing_scouts_nothing() -> None:
    assert "opt/scout" not in ids(plan_without("opt /src pgo rand kbench O2."))


def test_kernels_of_two_toolchains_have_each_its_own_plain_one() -> None:
    statements = [
        f"set toolchain {name}.\nset name {name}-plain.\nbuild /src.\n"
        f"set name {name}.\nopt /src {algorithm} rand kbench."
        for name, algorithm in (("clang", "autofdo"), ("gcc", "gcc-autofdo"))
    ]
    made = plan("\n".join([*statements, "eval clang-plain;clang;gcc-plain;gcc pipe."]))
    builds = [step for step in made.steps if step.kind == "kernel-build"]
    # The plain one is also that which is recorded for what the training runs.
    assert len(builds) == 6
    for step in builds:
        assert step.params["toolchain"] == step.id.partition("/")[0].partition("-")[0]
    assert made_from(made, made.step("gcc/scout"), "kernel").id == "gcc-plain/build"
