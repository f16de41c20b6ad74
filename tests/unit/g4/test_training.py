"""Plans of the loop: rounds on optimised kernels, and a base from an earlier release."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mepof.g4.compiler import compile_program
from mepof.plan.model import HostInput, Input, Json, Plan, StepInput
from mepof.spec.report import Report

from .planning import VARIANTS, assert_well_formed, ids, kinds, made_from, plan
from .reading import sound

OPT = "opt /src autofdo rand kbench O2;ThinLTO.\n"


def test_each_round_records_the_kernel_that_was_built_with_the_profile_so_far() -> None:
    made = plan(f"set rounds 3.\n{OPT}")
    assert_well_formed(made)
    assert [i for i in ids(made) if i.startswith("opt/")] == [
        *("opt/instrument", "opt/collect", "opt/profile"),
        *("opt/instrument2", "opt/collect2", "opt/profile2", "opt/renew2"),
        *("opt/instrument3", "opt/collect3", "opt/profile3", "opt/renew3"),
        "opt/build",
    ]
    for number, known in ((2, "opt/profile"), (3, "opt/renew2")):
        optimised = made.step(f"opt/instrument{number}")
        assert made_from(made, optimised, "profile").id == known
        assert optimised.params["uses"] == ["autofdo"]
        assert optimised.params["instrumented"] == {"algorithm": "autofdo"}
        # Link-time optimisation applies to the last build; this one must boot as well.
        assert optimised.params["options"] == ["O2"]
        assert "boot" in optimised.params
        collect, convert = made.step(f"opt/collect{number}"), made.step(f"opt/profile{number}")
        assert made_from(made, collect, "kernel") == optimised
        assert made_from(made, convert, "kernel") == optimised
        renew = made.step(f"opt/renew{number}")
        assert made_from(made, renew, "new") == convert
        assert made_from(made, renew, "old").id == known
        assert renew.params["decay"] == "1/2"
    assert made_from(made, made.step("opt/build"), "profile").id == "opt/renew3"
    assert [(r.kind, r.step) for r in made.results] == [
        *(("image", "opt/build"), ("profile", "opt/renew3"))
    ]


def test_a_release_goes_on_from_the_profile_of_the_one_before() -> None:
    made = plan(f"set name one.\n{OPT}set base one.\nset name two.\n{OPT}")
    assert_well_formed(made)
    assert made_from(made, made.step("two/collect"), "kernel").id == "two/instrument"
    assert made_from(made, made.step("two/instrument"), "profile").id == "one/profile"
    assert made_from(made, made.step("two/renew"), "old").id == "one/profile"
    assert made_from(made, made.step("two/build"), "profile").id == "two/renew"
    # The same as by rounds, and an image after each.
    rounds = plan(f"set rounds 2.\n{OPT}")
    for one, other in (("two/instrument", "opt/instrument2"), ("two/build", "opt/build")):
        assert made.step(one).params == rounds.step(other).params


def test_a_program_with_one_round_plans_what_it_planned_before() -> None:
    assert plan(f"set decay 0.1.\nset rounds 1.\nset base none.\n{OPT}").steps == plan(OPT).steps


def test_the_base_of_a_release_may_be_a_file_of_the_one_before() -> None:
    made = plan(f"set base /old/kernel.afdo.\nset decay 0.25.\n{OPT}eval plain;opt.")
    assert_well_formed(made)
    old = HostInput("/old/kernel.afdo")
    assert made.step("opt/instrument").inputs["profile"] == old
    renew = made.step("opt/renew")
    assert (renew.inputs["old"], renew.params["decay"]) == (old, "1/4")
    report = made.step("report")
    # Nobody knows what an external profile was trained with.
    assert [image.trained for image in Report.of(report, report.inputs).images] == [None, None]


def test_a_report_knows_the_training_of_all_rounds() -> None:
    made = plan(f"set rounds 2.\n{OPT}eval plain;opt.")
    report = Report.of(made.step("report"), made.step("report").inputs)
    assert report.collections == (StepInput("opt/collect"), StepInput("opt/collect2"))
    assert report.images[1].trained == (0, 1)


def test_without_weight_the_old_profile_still_shapes_what_was_recorded_on_it() -> None:
    made = plan(f"set decay 0.\nset rounds 2.\n{OPT}")
    assert made.step("opt/renew2").params["decay"] == "0"
    assert made_from(made, made.step("opt/build"), "profile").id == "opt/renew2"
    # Counters were not recorded on it.
    made = plan("set decay 0.\nset base /old/kernel.profdata.\nopt /src pgo rand kbench.")
    assert kinds(made)["profile-renew"] == 0
    assert made_from(made, made.step("opt/build"), "profile").id == "opt/profile"


@pytest.mark.parametrize("decay", ["0", "1/2"])
def test_what_is_not_instrumented_keeps_the_counts_of_the_base(decay: str) -> None:
    base = "set base /old/kernel.profdata.\n"
    text = f"{base}set instrument sched.\nopt /src pgo rand kbench."
    made = plan(f"set decay {'0' if decay == '0' else '0.5'}.\n{text}")
    assert_well_formed(made)
    renew = made.step("opt/renew")
    assert (renew.params["decay"], renew.params["part"]) == (decay, True)
    assert made_from(made, made.step("opt/build"), "profile").id == "opt/renew"
    # Where all is counted, the step is what it always was.
    assert "part" not in plan(f"{base}opt /src pgo rand kbench.").step("opt/renew").params


def test_what_is_above_builds_on_the_profile_that_comes_out() -> None:
    made = plan("set rounds 2.\nopt /src autofdo+propeller rand kbench O2.")
    assert_well_formed(made)
    optimised, mapped = made.step("opt/instrument2"), made.step("opt/instrument3")
    assert optimised.params["uses"] == ["autofdo"]
    assert mapped.params["uses"] == ["autofdo"]
    assert mapped.params["instrumented"] == {"algorithm": "propeller"}
    assert made_from(made, mapped, "profile").id == "opt/renew2"
    assert made_from(made, made.step("opt/build"), "profile").id == "opt/profile3"


def test_an_algorithm_may_need_samples_of_branch_stacks() -> None:
    made = plan("opt /src autofdo+propeller-paths rand kbench.")
    assert made.step("opt/collect").params["record"] == {"depth": 32}
    assert made.step("opt/collect2").params["record"] == {"period": 1009, "depth": 32}
    made = plan("set period 499.\nset depth 8.\nopt /src propeller-paths rand kbench.")
    assert made.step("opt/collect").params["record"] == {"period": 499, "depth": 8}


def test_the_base_of_a_stack_gives_the_profile_of_its_lowest_algorithm() -> None:
    stack = "opt /src autofdo+propeller rand kbench O2.\n"
    made = plan(f"set name one.\n{stack}set base one.\nset name two.\n{stack}")
    optimised = made_from(made, made.step("two/collect"), "kernel")
    assert optimised.params["uses"] == ["autofdo"]
    assert made_from(made, optimised, "profile").id == "one/profile2"


@pytest.mark.parametrize("algorithm", ["pgo", "cspgo"])
def test_counters_are_counted_before_optimisation_and_only_added(algorithm: str) -> None:
    opt = f"opt /src {algorithm} rand kbench O2.\n"
    made = plan(f"set name one.\n{opt}set base one.\nset name two.\n{opt}")
    assert_well_formed(made)
    last = "profile2" if algorithm == "cspgo" else "profile"
    renew = next(step for step in made.steps if step.kind == "profile-renew")
    # The same training of the same kernel is the same profile.
    assert renew.inputs == {"new": StepInput(f"one/{last}"), "old": StepInput(f"one/{last}")}
    made = plan(f"set base /old/a.{algorithm}.\n{opt}")
    (renew,) = (step for step in made.steps if step.kind == "profile-renew")
    assert renew.inputs["old"] == HostInput(f"/old/a.{algorithm}")
    assert "uses" not in made.step("opt/instrument").params


def test_branch_traces_are_those_of_the_rounds_in_their_order() -> None:
    traces = "set perf-data 1.data,2.data,3.data.\n"
    made = plan(f"set rounds 2.\n{traces}opt /src autofdo+propeller rand kbench.")
    raw = [made.step(f"opt/profile{n}").inputs["raw"] for n in ("", "2", "3")]
    assert raw == [HostInput("1.data"), HostInput("2.data"), HostInput("3.data")]
    assert kinds(made)["profile-collect"] == 0


def test_a_scenario_without_an_app_takes_the_default_one_but_at_a_console() -> None:
    variants = replace(
        VARIANTS,
        arguments={"trav": "none", "rand": "weight", "manual": "none", "script": "script"},
        interactive=frozenset({"manual"}),
        default_app="general",
    )

    def apps(training: str) -> Json:
        text = f"profile /src pgo {training}.\n"
        made = compile_program(sound(text), text, variants)
        return made.step("profile/collect").params.get("apps")

    default = apps("trav general")
    assert default and apps("trav") == apps("trav -") == apps("rand") == default
    assert apps("trav kbench") != default
    assert apps("manual") == apps("script") != default


LOCATING = replace(VARIANTS, locators=frozenset({"qemu"}))


def located(text: str) -> tuple[Plan, Report[Input]]:
    made = compile_program(sound(text), text, LOCATING)
    assert_well_formed(made)
    return made, Report[Input].of(made.step("report"), made.step("report").inputs)


def test_what_the_cases_execute_is_found_out_on_the_baseline() -> None:
    made, report = located(f"set seed 3.\n{OPT}eval plain;opt pipe.")
    assert report.executed == StepInput("executed")
    step, measured = made.step("executed"), made.step("measure")
    assert made_from(made, step, "kernel").id == "plain/build"
    for name in ("arch", "device", "metrics", "seed"):
        assert step.params[name] == measured.params[name]
    assert step.inputs["guest"] == measured.inputs["guest"]
    plain, opt = report.images
    assert (plain.profile, plain.uses) == (None, ())
    assert opt.profile == made.step("opt/build").inputs["profile"]
    assert opt.uses == ("autofdo",) and opt.toolchain == made.step("opt/build").params["toolchain"]


def test_a_foreign_profile_is_compared_with_what_the_cases_execute() -> None:
    _, report = located("recomp /src /old/kernel.profdata.\neval plain;recomp.")
    assert report.executed is not None
    assert report.images[1].profile == HostInput("/old/kernel.profdata")
    assert (report.images[1].trained, report.images[1].uses) == (None, ("pgo",))


@pytest.mark.parametrize(
    "text",
    [
        "build /src O3.\neval plain;build.",  # no profile
        f"{OPT}eval /boot/vmlinuz;opt.",  # a baseline without functions
        f"set core zen4.\n{OPT}eval plain;opt.",  # the measurement tells
        # Checksums of names.
        "set toolchain gcc.\nopt /src gcc-pgo rand kbench.\neval plain;opt.",
        "opt /src bolt rand kbench.\neval plain;opt.",  # a layout alone
    ],
)
def test_no_boot_is_planned_that_would_tell_nothing_new(text: str) -> None:
    made, report = located(text)
    assert report.executed is None and kinds(made)["executed-functions"] == 0


def test_one_profile_with_names_is_enough_for_the_boot() -> None:
    _, report = located("opt /src autofdo+propeller rand kbench.\neval plain;opt.")
    assert report.images[1].uses == ("autofdo", "propeller")
    assert report.executed is not None


def test_several_reports_on_one_baseline_share_the_boot() -> None:
    made, _ = located(f"{OPT}eval plain;opt pipe.\neval plain;opt;plain pipe.")
    assert kinds(made)["executed-functions"] == 1


def test_other_devices_do_not_tell_what_the_cases_execute() -> None:
    assert kinds(plan(f"{OPT}eval plain;opt."))["executed-functions"] == 0
