"""From programs to plans."""

from __future__ import annotations

from collections import Counter

import pytest

from mepof.g4.compiler import compile_program
from mepof.plan.model import HostInput, Plan, Step, StepInput

from .reading import VOCABULARY, sound
from .test_reference import SOUND

ROUNDS = {**dict.fromkeys(VOCABULARY.algorithms, 1), "cspgo": 2}


def plan(text: str) -> Plan:
    return compile_program(sound(text), text, ROUNDS)


def kinds(made: Plan) -> Counter[str]:
    return Counter(step.kind for step in made.steps)


def ids(made: Plan) -> list[str]:
    return [step.id for step in made.steps]


def made_from(made: Plan, step: Step, name: str) -> Step:
    """The step whose artifact is the input of that name."""
    given = step.inputs[name]
    assert isinstance(given, StepInput)
    return made.step(given.step)


def assert_well_formed(made: Plan) -> None:
    """Unique ids, no step twice, inputs before their users, results of steps that are there."""
    seen: set[str] = set()
    for step in made.steps:
        assert step.id not in seen
        for given in step.inputs.values():
            assert isinstance(given, HostInput) or given.step in seen
        seen.add(step.id)
    contents = [(s.kind, str(s.params), str(s.inputs)) for s in made.steps]
    assert len(set(contents)) == len(contents)
    assert all(result.step in seen for result in made.results)
    names = [(result.name, result.kind) for result in made.results]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("text", SOUND)
def test_every_example_of_the_reference_compiles(text: str) -> None:
    assert_well_formed(plan(text))


PUBLISHED = [
    "eval /sys/out/opt.img file;pipe.",
    "eval /sys/out/opt.img;/sys/out/plain.img syscall;overhead;pipe;proc;file.",
    "opt /src/linux pgo rand com.android.settings O2;ThinLTO.",
    "opt /src/linux pgo trav com.android.settings;kbench - .",
    "profile /src/linux pgo manual.",
    "merge /a/1.profdata;/a/2.profdata 2;1.",
    "adap https://example.org/linux.git pgo rand kbench O3.",
    "recomp /src/linux /sys/out/opt.profdata O2;FullLTO.",
]


@pytest.mark.parametrize("text", PUBLISHED)
def test_published_one_liners_compile_unchanged(text: str) -> None:
    made = plan(text)
    assert_well_formed(made)
    assert made.steps
    assert made.program == text


def test_opt_builds_profiles_and_builds_again_and_checks() -> None:
    made = plan("opt /src pgo rand kbench O2;ThinLTO.")
    assert ids(made) == [
        *("source", "opt/instrument", "guest", "opt/collect", "opt/profile", "opt/build"),
        "opt/check",
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


def test_debians_source_is_named_not_read() -> None:
    source = plan("opt debian:linux-source-6.12 pgo rand kbench.").step("source")
    assert source.params == {"debian": "debian:linux-source-6.12"}
    assert source.inputs == {}


def test_what_two_statements_share_is_in_the_plan_once() -> None:
    made = plan(
        "opt /src pgo rand kbench O2.\nset name small.\nopt /src pgo rand kbench O2;ThinLTO.\n"
        "eval plain;opt;small pipe.\neval plain;small pipe.\n"
    )
    assert_well_formed(made)
    assert kinds(made) == {
        "kernel-source": 1,
        "guest": 1,
        "kernel-build": 4,  # instrumented, plain, two with the profile
        "profile-collect": 1,
        "profile-convert": 1,
        "boot-check": 2,
        "measure": 3,
        "report": 2,
    }
    assert [r.name for r in made.results if r.kind == "report"] == ["report", "report2"]


def test_the_plain_kernel_is_that_of_the_last_statement_with_its_settings() -> None:
    made = plan(
        "set config server.\nopt /one pgo rand kbench O3.\nset config slim.\n"
        "opt /two pgo rand kbench.\nset seed 9.\neval plain pipe.\n"
    )
    plain = made.step("plain/build")
    assert plain.params["config"] == ["slim"]
    assert plain.params["options"] == []
    assert plain.params["stage"] == "plain"
    assert "profile" not in plain.inputs
    assert made_from(made, plain, "source").inputs == {"origin": HostInput("/two")}


def test_settings_hold_for_what_follows_them() -> None:
    made = plan(
        "set seed 5.\nset repetitions 2.\nset actions 7.\nprofile /src pgo rand kbench.\n"
        "set seed 8.\nrecomp /src profile.\neval recomp pipe."
    )
    collect = made.step("profile/collect")
    assert (collect.params["seed"], collect.params["actions"]) == (5, 7)
    assert made.step("measure/recomp").params["seeds"] == [8, 9]
    assert made.seed == 5


def test_an_algorithm_of_two_rounds_builds_the_second_on_the_first_profile() -> None:
    made = plan("opt /src cspgo rand kbench.")
    assert_well_formed(made)
    second = made.step("opt/instrument2")
    assert made_from(made, second, "profile").id == "opt/profile"
    assert made_from(made, made.step("opt/build"), "profile").id == "opt/profile2"
    assert "profile" not in made.step("opt/instrument").inputs


def test_a_stack_takes_the_rounds_of_its_parts() -> None:
    assert kinds(plan("opt /src pgo+propeller rand kbench."))["profile-collect"] == 2


def test_recomp_takes_a_profile_of_the_users_by_its_path() -> None:
    made = plan('recomp /src "/old/a profile.profdata" O2.')
    build = made.step("recomp/build")
    assert build.inputs["profile"] == HostInput("/old/a profile.profdata")
    assert build.params["algorithm"] == "pgo"
    assert [(r.name, r.kind) for r in made.results] == [("recomp", "image")]


def test_merge_weighs_profiles_of_the_program_and_of_files() -> None:
    made = plan(
        "profile /src pgo trav kbench.\nmerge profile;/old/x.profdata 2;0.5.\nrecomp /src merge."
    )
    merge = made.step("merge/merge")
    assert merge.params["weights"] == ["2", "1/2"]
    assert merge.inputs == {
        "profile0": StepInput("profile/profile"),
        "profile1": HostInput("/old/x.profdata"),
    }
    assert made_from(made, made.step("recomp/build"), "profile").id == "merge/merge"
    assert plan("merge /a/x;/b/y.").steps[0].params["weights"] == ["1", "1"]


def test_a_merged_profile_is_of_its_profiles_algorithm_not_of_a_later_kernels() -> None:
    made = plan(
        "profile /src autofdo trav kbench.\nopt /src pgo rand kbench.\n"
        "merge /old/x.profdata;profile.\nrecomp /src merge.\nrecomp /src opt O3."
    )
    assert made.step("merge/merge").params["algorithm"] == "autofdo"
    assert made.step("recomp/build").params["algorithm"] == "autofdo"
    assert made.step("recomp2/build").params["algorithm"] == "pgo"


def test_a_merge_uses_the_toolchain_that_is_set_for_it() -> None:
    made = plan("profile /src pgo trav kbench.\nset toolchain gcc.\nmerge profile.")
    assert made.step("merge/merge").params["toolchain"] == "gcc"


def test_images_of_one_name_are_told_apart() -> None:
    made = plan("eval /a/k.img;/b/k.img;/c/k.img;/d/k#2 pipe.")
    assert made.step("report").params["images"] == ["k", "k#2", "k#3", "k#2#2"]


def test_an_image_that_is_named_twice_is_measured_once() -> None:
    made = plan("opt /src pgo rand kbench.\neval plain;plain pipe.")
    assert kinds(made)["measure"] == 1
    assert made.step("report").params["images"] == ["plain", "plain#2"]


def test_two_plain_kernels_are_two_files() -> None:
    made = plan(
        "opt /one pgo rand kbench.\neval plain;opt pipe.\n"
        "set name plain2.\nopt /two pgo rand kbench.\neval plain;plain2 pipe.\neval plain pipe.\n"
    )
    images = {r.name: r.step for r in made.results if r.kind == "image"}
    assert list(images) == ["opt", "plain", "plain2", "plain3"]
    for name, path in (("plain", "/one"), ("plain3", "/two")):
        source = made_from(made, made.step(images[name]), "source")
        assert source.inputs == {"origin": HostInput(path)}
    assert made.step("report2").params["images"] == ["plain3", "plain2"]
    assert made.step("report3").params["images"] == ["plain3"]


def test_a_report_reads_measurements_builds_and_profiles() -> None:
    made = plan("opt /src pgo rand kbench.\neval plain;opt;/out/x.img pipe.")
    inputs = made.step("report").inputs
    assert sorted(inputs) == [
        *("build0", "build1", "measurement0", "measurement1", "measurement2", "profile0"),
    ]
    assert made.step("report").params["images"] == ["plain", "opt", "x"]


def test_scripts_and_configs_of_the_user_are_inputs() -> None:
    made = plan("set config ./my.config.\nprofile /src pgo script kbench:a.txt.")
    assert made.step("profile/instrument").inputs["config0"] == HostInput("./my.config")
    assert made.step("profile/instrument").params["config"] == ["file"]
    assert made.step("profile/collect").inputs["script0"] == HostInput("a.txt")
    assert made.step("profile/collect").params["apps"] == ["kbench"]


def test_a_plan_is_the_same_every_time() -> None:
    text = "opt /src cspgo rand kbench O3;ThinLTO.\neval plain;opt."
    assert plan(text) == plan(text)


def test_the_order_of_options_makes_no_other_build() -> None:
    made = plan("opt /s pgo rand kbench O3;ThinLTO.\nopt /s pgo rand kbench ThinLTO;O3.")
    assert kinds(made)["kernel-build"] == 2
