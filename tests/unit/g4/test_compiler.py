"""Compiling statements to plans."""

from __future__ import annotations

import pytest

from mepof.g4 import check, parse
from mepof.g4.compiler import compile_program
from mepof.plan.model import HostInput, Input, Plan, StepInput
from mepof.spec.report import Report

from .planning import VARIANTS, assert_well_formed, ids, kinds, made_from, names, plan
from .reading import VOCABULARY, source
from .test_reference import SOUND


@pytest.mark.parametrize("text", SOUND)
def test_every_example_of_the_reference_compiles(text: str) -> None:
    assert_well_formed(plan(text))


PUBLISHED = [
    "eval /sys/out/opt.img file;pipe.",
    "eval /sys/out/opt.img;/sys/out/plain.img syscall;overhead;pipe;proc;file.",
    "opt /src/linux pgo rand kbench O2;ThinLTO.",
    "opt /src/linux pgo trav kbench - .",
    "profile /src/linux pgo manual.",
    "merge /a/1.profdata;/a/2.profdata 2;1.",
    "adap https://example.org/linux.git pgo rand kbench O3.",
    "recomp /src/linux /sys/out/opt.profdata O2;FullLTO.",
]


@pytest.mark.parametrize("text", PUBLISHED)
def test_published_one_liners_compile_unchanged(text: str) -> None:
    assert check(parse(source(text)).program, VOCABULARY) == ()
    made = plan(text)
    assert_well_formed(made)
    assert made.steps
    assert made.program == text


@pytest.mark.parametrize(
    "text",
    [
        "opt /src/linux pgo rand com.android.settings O2;ThinLTO.",
        "opt /src/linux pgo trav com.android.settings;kbench - .",
    ],
)
def test_one_liners_with_unknown_words_parse(text: str) -> None:
    parsed = parse(source(text))
    assert parsed.diagnostics == ()
    made = compile_program(parsed.program, text, VARIANTS)
    assert_well_formed(made)
    assert made.steps
    assert made.program == text


def test_opt_builds_profiles_and_builds_again() -> None:
    made = plan("opt /src pgo rand kbench O2;ThinLTO.")
    assert ids(made) == [
        *("source", "opt/instrument", "guest", "opt/collect", "opt/profile", "opt/build"),
    ]
    assert [(r.name, r.kind, r.step) for r in made.results] == [
        *(("opt", "image", "opt/build"), ("opt", "profile", "opt/profile")),
    ]
    build = made.step("opt/build")
    assert made_from(made, build, "profile").id == "opt/profile"
    assert build.params["options"] == ["O2", "ThinLTO"]
    # Link-time optimisation would only make the instrumented build slower.
    assert made.step("opt/instrument").params["options"] == ["O2"]
    assert made.step("source").inputs == {"origin": HostInput("/src")}


def test_steps_that_two_statements_share_are_planned_once() -> None:
    made = plan(
        "opt /src pgo rand kbench O2.\nset name small.\nopt /src pgo rand kbench O2;ThinLTO.\n"
        "eval plain;opt;small pipe.\neval plain;small pipe.\n"
    )
    assert_well_formed(made)
    assert kinds(made) == {
        "kernel-source": 1,
        "guest": 1,
        "plugins": 1,
        "kernel-build": 4,  # instrumented, plain, two with the profile
        "profile-collect": 1,
        "profile-convert": 1,
        "measure": 2,
        "report": 2,
    }
    assert [r.name for r in made.results if r.kind == "report"] == ["report", "report2"]


def test_a_build_without_a_profile_has_its_options_alone() -> None:
    made = plan("set toolchain clang.\nbuild /src O3;ThinLTO.\neval build;plain.")
    build, plain = made.step("build/build"), made.step("plain/build")
    assert build.params == {**plain.params, "options": ["O3", "ThinLTO"]}
    assert build.inputs == plain.inputs
    assert set(build.inputs) == {"source"}
    assert names(made, "report") == ["build", "plain"]
    report = Report[Input].of(made.step("report"), made.step("report").inputs)
    assert [image.trained for image in report.images] == [None, None]


def test_a_build_without_options_is_the_plain_one() -> None:
    made = plan("opt /src pgo rand kbench.\nbuild /src.\nbuild /src O2.\neval plain;build;build2.")
    assert kinds(made)["kernel-build"] == 4
    # Each name that the program uses is a file of that name.
    images = {r.name: r.step for r in made.results if r.kind == "image"}
    assert list(images) == ["opt", "build", "build2", "plain"]
    assert images["plain"] == images["build"] != images["build2"]
    assert names(made, "report") == ["plain", "build", "build2"]
    assert_well_formed(made)


def test_a_build_has_the_settings_that_hold_there() -> None:
    made = plan("set config server.\nset arch arm64.\nbuild /src.\nset config slim.\neval build.")
    params = made.step("build/build").params
    assert (params["config"], params["arch"]) == (["server"], "arm64")
    assert (
        params
        == plan(
            "set config server.\nset arch arm64.\nopt /src pgo rand kbench."
            "\nset config slim.\neval plain;opt."
        )
        .step("plain/build")
        .params
    )


def goals(made: Plan, report: str) -> list[tuple[str, float, str | None]]:
    step = made.step(report)
    found = Report[Input].of(step, step.inputs).goals
    return [(goal.quantity, goal.bound, goal.metric) for goal in found]


def test_goals_hold_for_the_evaluations_that_follow_and_compare_images() -> None:
    opt = "opt /src pgo rand kbench.\n"
    made = plan(
        f"{opt}eval plain;opt pipe.\n"
        "goal geomean 8. goal worst -1 guest_time;kernel_instructions. goal text +2.\n"
        "eval plain;opt pipe. eval opt pipe.\n"
        "goal geomean 9 kernel_instructions.\neval plain;opt file."
    )
    assert_well_formed(made)
    worst = [("worst", -1, "guest_time"), ("worst", -1, "kernel_instructions"), ("text", 2, None)]
    assert goals(made, "report") == goals(made, "report3") == []
    assert goals(made, "report2") == [("geomean", 8, "kernel_instructions"), *worst]
    assert goals(made, "report4") == [("geomean", 9, "kernel_instructions"), *worst]
    # What is measured does not depend on them.
    assert made_from(made, made.step("report2"), "evaluation").id == "measure"


def test_goals_of_groups_and_of_memory_stand_beside_those_of_all_cases() -> None:
    made = plan(
        "opt /src pgo rand kbench.\n"
        "goal geomean 8. goal geomean:pipe 10. goal memory 1. eval plain;opt.\n"
        "goal geomean:pipe 12. eval plain;opt pipe;file."
    )
    found = Report[Input].of(made.step("report2"), made.step("report2").inputs).goals
    assert [(goal.quantity, goal.group, goal.bound) for goal in found] == [
        *(("geomean", None, 8), ("geomean", "pipe", 12), ("memory", None, 1)),
    ]


def test_a_program_without_goals_plans_what_it_planned_before() -> None:
    text = "opt /src pgo rand kbench.\neval plain;opt pipe."
    assert "goals" not in plan(text).step("report").params


def test_a_goal_leaves_a_name_to_the_result_that_follows() -> None:
    made = plan("set name fast. goal worst -1. opt /src pgo rand kbench. eval plain;fast.")
    assert [result.name for result in made.results][:2] == ["fast", "fast"]


def test_comparisons_hold_for_the_evaluations_that_follow() -> None:
    opt = "opt /src pgo rand kbench.\neval plain ipc;pages.\nset core zen4.\n"
    made = plan(
        f"{opt}compare unix-4 ipc/pipe-4 ratio cycles;instructions.\n"
        "compare walk-4k walk-2m per-event:dtlb_misses. eval plain ipc;pages.\n"
        "compare ipc/unix-4 pipe-4 ratio. eval opt ipc;pages."
    )
    assert_well_formed(made)
    found = [Report[Input].of(s, s.inputs).pairs for s in made.steps if s.kind == "report"]
    assert [len(pairs) for pairs in found] == [0, 2, 2]
    ratio, cost = found[1]
    assert (ratio.first, ratio.second) == (("ipc", "unix-4"), ("ipc", "pipe-4"))
    assert (ratio.by, ratio.event, ratio.suite) == ("ratio", None, None)
    assert ratio.metrics == ("cycles", "instructions")
    assert (cost.by, cost.event, cost.metrics) == ("per-event", "dtlb_misses", ())
    # The same cases in the same way: the later one holds.
    assert [pair.metrics for pair in found[2]] == [(), ()]


def test_a_program_without_comparisons_plans_what_it_planned_before() -> None:
    text = "opt /src pgo rand kbench.\neval plain;opt pipe."
    assert "pairs" not in plan(text).step("report").params


def test_recomp_takes_an_external_profile_by_its_path() -> None:
    made = plan('recomp /src "/old/a profile.profdata" O2.')
    build = made.step("recomp/build")
    assert build.inputs["profile"] == HostInput("/old/a profile.profdata")
    assert build.params["uses"] == ["pgo"]
    assert [(r.name, r.kind) for r in made.results] == [("recomp", "image")]


@pytest.mark.parametrize(
    ("between", "differs"),
    [
        ("", False),
        ("set actions 7.", False),
        ("set config server.", True),
        ("set config ./my.config.", True),
        ("set arch arm64.", True),
    ],
)
def test_a_profile_of_another_configuration_or_architecture_is_told(
    between: str, differs: bool
) -> None:
    made = plan(
        "profile /src pgo rand kbench.\nmerge profile;/old/x.profdata.\n"
        f"{between}\nrecomp /src merge O3.\nopt /src pgo rand kbench.\n"
    )
    assert made.step("recomp/build").params.get("other_kernel", False) == differs
    assert "other_kernel" not in made.step("opt/build").params


def test_merge_weighs_profiles_of_the_program_and_of_files() -> None:
    made = plan(
        "profile /src pgo trav kbench.\nmerge profile;/old/x.profdata 2;0.5.\nrecomp /src merge."
    )
    merge = made.step("merge/merge")
    assert merge.params["profiles"] == [{"weight": "2"}, {"weight": "1/2"}]
    assert merge.inputs == {
        "profiles.0.profile": StepInput("profile/profile"),
        "profiles.1.profile": HostInput("/old/x.profdata"),
    }
    assert made_from(made, made.step("recomp/build"), "profile").id == "merge/merge"
    alike = plan("merge /a/x;/b/y.").steps[0]
    assert alike.params["profiles"] == [{"weight": "1"}, {"weight": "1"}]


def test_a_merged_profile_has_the_algorithm_of_its_profiles() -> None:
    made = plan(
        "profile /src autofdo trav kbench.\nopt /src pgo rand kbench.\n"
        "merge /old/x.profdata;profile.\nrecomp /src merge.\nrecomp /src opt O3."
    )
    assert made.step("merge/merge").params["algorithm"] == "autofdo"
    assert made.step("recomp/build").params["uses"] == ["autofdo"]
    assert made.step("recomp2/build").params["uses"] == ["pgo"]


def test_a_merge_uses_the_toolchain_that_is_set_for_it() -> None:
    made = plan("profile /src pgo trav kbench.\nset toolchain clang-19.\nmerge profile.")
    assert made.step("merge/merge").params["toolchain"] == "clang-19"


def test_images_with_equal_names_are_numbered() -> None:
    made = plan("eval /a/k.img;/b/k.img;/c/k.img;/d/k#2 pipe.")
    assert names(made, "report") == ["k", "k#2", "k#3", "k#2#2"]


def test_a_report_reads_measurements_builds_and_profiles() -> None:
    made = plan("opt /src pgo rand kbench.\neval plain;opt;/out/x.img pipe.")
    inputs = made.step("report").inputs
    assert sorted(inputs) == [
        *("collections.0", "evaluation", "images.0.build", "images.1.build"),
        *("images.1.profile", "profiles.0.profile"),
    ]
    assert sorted(made.step("measure").inputs) == [
        *("artifacts.plugins", "guest", "images.0", "images.1", "images.2"),
    ]
    assert names(made, "report") == ["plain", "opt", "x"]


def test_a_relinked_control_is_the_baseline_built_with_other_layouts() -> None:
    text = "opt /src pgo rand kbench.\neval plain;opt pipe."
    without, made = plan(text), plan(f"set relinked 2.\n{text}")
    plain = made.step("plain/build")
    for number in (1, 2):
        again = made.step(f"plain/relinked{number}")
        assert again.params == {**plain.params, "layout_seed": number}
        assert again.inputs == plain.inputs
        assert made.step("measure").inputs[f"relinked.{number - 1}"] == StepInput(again.id)
    # Everything else is built as without the control.
    others = [step for step in made.steps if "relinked" not in step.id and step.kind != "measure"]
    assert {s.id: s for s in others if s.kind != "report"} == {
        s.id: s for s in without.steps if s.kind not in ("measure", "report")
    }


def test_a_build_with_options_is_relinked_as_a_baseline() -> None:
    made = plan(
        "set relinked 2.\nbuild /src O3.\nopt /src pgo rand kbench O3.\neval build;opt pipe."
    )
    for number in (1, 2):
        again = made.step(f"build/relinked{number}")
        assert again.params == {**made.step("build/build").params, "layout_seed": number}
        assert again.inputs == made.step("build/build").inputs
        assert made.step("measure").inputs[f"relinked.{number - 1}"] == StepInput(again.id)


def test_a_report_gets_the_training_runs_of_each_image() -> None:
    made = plan(
        "set perf-data /mine.data.\nset name own.\nopt /src autofdo rand kbench.\n"
        "opt /src autofdo+propeller trav kbench.\nprofile /src pgo rand kbench.\n"
        "profile /src pgo trav kbench.\nmerge profile;profile2.\nrecomp /src merge.\n"
        "recomp /src /old.profdata.\neval plain;own;opt;recomp;recomp2;/a.img."
    )
    step = made.step("report")
    # The training run of an external branch trace or profile is unknown.
    report = Report[Input].of(step, step.inputs)
    trained = {image.name: image.trained for image in report.images if image.trained is not None}
    assert list(trained) == ["recomp"]
    assert [report.collections[n] for n in trained["recomp"]] == [
        StepInput("profile/collect"),
        StepInput("profile2/collect"),
    ]
