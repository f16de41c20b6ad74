"""The steps that statements have in common: builds, training runs and what they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from mepof.device.observation import ArtifactNeed, Branches, Measure
from mepof.g4.compiler import compile_program
from mepof.plan.model import HostInput, Step, StepInput

from .planning import VARIANTS, assert_well_formed, ids, kinds, made_from, names, plan
from .reading import sound


def test_a_debian_source_package_is_named_but_not_read() -> None:
    source = plan("opt debian:linux-source-6.12 pgo rand kbench.").step("source")
    assert source.params == {"address": "debian:linux-source-6.12"}
    assert source.inputs == {}


def test_plain_is_the_kernel_of_the_last_statement_with_its_settings() -> None:
    made = plan(
        "set config server.\nopt /one pgo rand kbench O3.\nset config slim.\n"
        "opt /two pgo rand kbench.\nset seed 9.\neval plain pipe.\n"
    )
    plain = made.step("plain/build")
    assert plain.params["config"] == ["slim"]
    assert plain.params["options"] == []
    assert "uses" not in plain.params
    assert "instrumented" not in plain.params
    assert set(plain.inputs) == {"source"}
    assert made_from(made, plain, "source").inputs == {"origin": HostInput("/two")}


def test_settings_apply_to_the_statements_after_them() -> None:
    made = plan(
        "set seed 5.\nset repetitions 2.\nset actions 7.\nprofile /src pgo rand kbench.\n"
        "set seed 8.\nrecomp /src profile.\neval recomp pipe."
    )
    collect = made.step("profile/collect")
    assert (collect.params["seed"], collect.params["actions"]) == (5, 7)
    params = made.step("measure").params
    assert (params["seed"], params["min_boots"], params["max_boots"]) == (8, 2, 2)
    assert made.seed == 5


def test_an_algorithm_of_two_rounds_builds_the_second_on_the_first_profile() -> None:
    made = plan("opt /src cspgo rand kbench.")
    assert_well_formed(made)
    second = made.step("opt/instrument2")
    assert made_from(made, second, "profile").id == "opt/profile"
    assert made_from(made, made.step("opt/build"), "profile").id == "opt/profile2"
    assert "profile" not in made.step("opt/instrument").inputs


def test_a_stack_has_the_rounds_of_its_algorithms() -> None:
    assert kinds(plan("opt /src pgo+propeller rand kbench."))["profile-collect"] == 2
    assert kinds(plan("opt /src cspgo+propeller rand kbench."))["profile-collect"] == 3


@pytest.mark.parametrize("below", ["autofdo", "pgo"])
def test_the_second_algorithm_of_a_stack_profiles_the_build_that_uses_the_first(below: str) -> None:
    made = plan(f"opt /src {below}+propeller rand kbench O2.")
    assert_well_formed(made)
    assert [identifier for identifier in ids(made) if identifier != "plugins"] == [
        *("source", "opt/instrument", "guest", "opt/collect", "opt/profile"),
        *("opt/instrument2", "opt/collect2", "opt/profile2", "opt/build"),
    ]
    # Rounds that record branches need the artifacts for recording.
    needing = [step.id for step in made.steps if "artifacts.plugins" in step.inputs]
    assert needing == [*(["opt/collect"] if below == "autofdo" else []), "opt/collect2"]
    first, second = made.step("opt/instrument"), made.step("opt/instrument2")
    assert "uses" not in first.params
    assert first.params["instrumented"] == {"algorithm": below}
    assert second.params["uses"] == [below]
    assert second.params["instrumented"] == {"algorithm": "propeller"}
    assert made_from(made, second, "profile").id == "opt/profile"
    converted = made.step("opt/profile2")
    assert (converted.params["algorithm"], converted.params["below"]) == ("propeller", [below])
    assert made_from(made, converted, "profile").id == "opt/profile"
    assert made_from(made, converted, "kernel").id == "opt/instrument2"
    assert "below" not in made.step("opt/profile").params
    last = made.step("opt/build")
    assert last.params["uses"] == [below, "propeller"]
    assert made_from(made, last, "profile").id == "opt/profile2"
    # The profile of a layout fits only that exact build, so nothing else may differ.
    shared = ("arch", "config", "toolchain", "options")
    assert [second.params[key] for key in shared] == [last.params[key] for key in shared]


def test_a_stack_shares_its_first_round_with_its_first_algorithm_alone() -> None:
    made = plan(
        "opt /src autofdo rand kbench O2.\nopt /src autofdo+propeller rand kbench O2.\n"
        "opt /src pgo+propeller rand kbench O2.\neval plain;opt;opt2;opt3."
    )
    assert_well_formed(made)
    assert made_from(made, made.step("opt2/profile2"), "profile").id == "opt/profile"
    assert kinds(made) == {
        "kernel-source": 1,
        "guest": 1,
        "plugins": 1,
        # Profiled: for autofdo, on autofdo, for pgo, on pgo; used: three; and plain.
        "kernel-build": 8,
        "profile-collect": 4,
        "profile-convert": 4,
        "measure": 1,
        "report": 1,
    }


def test_link_time_optimisation_goes_to_the_builds_that_need_it() -> None:
    made = plan("opt /src autofdo+propeller rand kbench O3;ThinLTO.")
    options = {step.id: step.params["options"] for step in made.steps if "options" in step.params}
    assert options == {
        "opt/instrument": ["O3"],
        "opt/instrument2": ["O3", "ThinLTO"],
        "opt/build": ["O3", "ThinLTO"],
    }


def test_only_the_build_with_the_profile_is_booted_as_a_check() -> None:
    made = plan(
        "set device qemu.\nset seed 4.\nopt /src autofdo+propeller rand kbench.\neval plain."
    )
    for step in made.steps:
        if step.kind == "kernel-build":
            boots = step.id == "opt/build"
            assert ("boot.guest" in step.inputs) == boots
            assert step.params.get("boot") == ({"device": "qemu", "seed": 4} if boots else None)


def test_every_artifact_that_a_device_needs_is_planned() -> None:
    class Board:
        def needs(self, arch: str, observed: Measure | Branches) -> Mapping[str, ArtifactNeed]:
            if isinstance(observed, Measure):
                return {}
            assert observed == Branches(10007, 16)
            return {"tracer": ArtifactNeed("board-firmware", {"arch": arch})}

    text = "set period 10007.\nset depth 16.\nopt /src autofdo rand kbench.\neval plain;opt."
    made = compile_program(sound(text), text, replace(VARIANTS, devices={"qemu": Board()}))
    assert made.step("tracer") == Step("tracer", "board-firmware", {"arch": "x86-64"}, {})
    assert made_from(made, made.step("opt/collect"), "artifacts.tracer").id == "tracer"
    assert set(made.step("measure").inputs) == {"guest", "images.0", "images.1"}


def test_a_core_applies_to_measurements_after_it_is_set() -> None:
    text = "opt /src pgo rand kbench.\neval plain;opt pipe.\n"
    without = plan(text)
    assert all(step.kind != "pmu" for step in without.steps)
    assert "core" not in without.step("measure").params
    made = plan(f"{text}set core zen4.\neval plain;opt pipe.\n")
    old, new = made.step("measure"), made.step("measure-2")
    assert old == without.step("measure")
    assert new.params == {**old.params, "core": "zen4", "artifacts": {"pmu": None}}
    counted, modelled = dict(old.inputs), dict(new.inputs)
    assert counted.pop("artifacts.plugins") == StepInput("plugins")
    assert modelled.pop("artifacts.pmu") == StepInput("pmu")
    assert counted == modelled
    assert [step.id for step in made.steps if step.kind == "pmu"] == ["pmu"]


def test_cpus_are_of_the_guests_that_train_and_measure() -> None:
    text = "opt /src pgo rand kbench.\neval plain;opt."
    one, several = plan(f"set cpus 1.\n{text}"), plan(f"set cpus 4.\n{text}")
    changed = [step.id for step in one.steps if several.step(step.id) != step]
    assert changed == ["opt/collect", "measure", "report"]
    for name in ("opt/collect", "measure"):
        assert several.step(name).params == {**one.step(name).params, "cpus": 4}
    # Steps of programs without the setting are those of always.
    assert [step for step in one.steps if step.kind != "report"] == [
        step for step in plan(text).steps if step.kind != "report"
    ]
    assert not any("cpus" in step.params for step in one.steps)


def test_branches_are_recorded_with_the_period_and_depth_of_the_program() -> None:
    text = "profile /src autofdo rand kbench.\nprofile /src pgo rand kbench."
    made = plan(text)
    # Every branch.
    assert made.step("profile/collect").params["record"] == {"depth": 32}
    made = plan(f"set period 10007.\nset depth 16.\n{text}")
    recorded, counted = made.step("profile/collect"), made.step("profile2/collect")
    assert recorded.params["record"] == {"period": 10007, "depth": 16}
    assert "record" not in counted.params


def test_a_given_branch_trace_replaces_collection() -> None:
    text = "profile /src autofdo rand kbench.\nprofile /src pgo rand kbench."
    made = plan(f"set perf-data /tmp/perf.data.\n{text}")
    assert_well_formed(made)
    converted = made.step("profile/profile")
    assert converted.inputs["raw"] == HostInput("/tmp/perf.data")
    assert made_from(made, converted, "kernel").id == "profile/instrument"
    # No branches are recorded for pgo.
    assert [step.id for step in made.steps if step.kind == "profile-collect"] == [
        "profile2/collect"
    ]
    assert plan(text, "/tmp/perf.data") == made


def test_each_recorded_round_of_a_stack_takes_one_branch_trace() -> None:
    text = "opt /src autofdo+propeller rand kbench."
    made = plan(f"set perf-data one.data,two.data.\n{text}")
    assert made.step("opt/profile").inputs["raw"] == HostInput("one.data")
    assert made.step("opt/profile2").inputs["raw"] == HostInput("two.data")
    assert kinds(made)["profile-collect"] == 0
    # With fewer, the device records the others.
    made = plan(text, "one.data")
    assert made.step("opt/profile").inputs["raw"] == HostInput("one.data")
    assert made_from(made, made.step("opt/profile2"), "raw").id == "opt/collect2"
    # The instrumented round takes none.
    made = plan("opt /src pgo+propeller rand kbench.", "one.data")
    assert made_from(made, made.step("opt/profile"), "raw").id == "opt/collect"
    assert made.step("opt/profile2").inputs["raw"] == HostInput("one.data")


def test_the_suffix_of_an_external_profile_gives_its_algorithm() -> None:
    for name, algorithm in {
        "x.afdo": "autofdo",
        "x.profdata": "pgo",
        "x.cc_profile": "propeller",
        "x": "pgo",
        "a.afdo/x.y": "pgo",
    }.items():
        made = plan(f"recomp /src /old/{name}.\nmerge /old/{name};/old/z.")
        assert made.step("recomp/build").params["uses"] == [algorithm], name
        assert made.step("merge/merge").params["algorithm"] == algorithm, name


def test_recomp_uses_all_profiles_of_a_stack() -> None:
    made = plan("profile /src autofdo+propeller rand kbench.\nrecomp /src profile.")
    assert made.step("recomp/build").params["uses"] == ["autofdo", "propeller"]


def test_an_image_that_is_named_twice_has_two_names() -> None:
    made = plan("opt /src pgo rand kbench.\neval plain;plain pipe.")
    inputs = made.step("measure").inputs
    assert inputs["images.0"] == inputs["images.1"]
    assert names(made, "report") == ["plain", "plain#2"]


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
    assert names(made, "report2") == ["plain3", "plain2"]
    assert names(made, "report3") == ["plain3"]


def test_scripts_and_configs_of_the_user_are_inputs() -> None:
    made = plan("set config ./my.config.\nprofile /src pgo script kbench:a.txt.")
    assert made.step("profile/instrument").inputs["config.0"] == HostInput("./my.config")
    assert made.step("profile/instrument").params["config"] == [None]
    assert made.step("profile/collect").inputs["apps.0.script"] == HostInput("a.txt")
    assert made.step("profile/collect").params["apps"] == [{"name": "kbench"}]


def test_each_config_file_is_an_input_of_its_own() -> None:
    made = plan("set config ./a.config+kunit+./b.config.\nbuild /src.").step("build/build")
    assert made.params["config"] == [None, "kunit", None]
    files = {name: given for name, given in made.inputs.items() if name.startswith("config.")}
    assert files == {"config.0": HostInput("./a.config"), "config.2": HostInput("./b.config")}


def test_a_suite_is_trained_on_with_its_programs_in_the_guest() -> None:
    text = "opt /l pgo rand kbench:2;ipc;threads:0.5. eval plain;opt."
    added = {"ipc": ("ipc",), "threads": ("threads",), "kbench": ()}
    variants = replace(VARIANTS, app_additions=added, arguments={"rand": "weight"})
    made = compile_program(sound(text), text, variants)
    collect = made.step("opt/collect")
    assert collect.params["apps"] == [
        {"name": "kbench", "weight": "2"},
        {"name": "ipc"},
        {"name": "threads", "weight": "1/2"},
    ]
    assert made_from(made, collect, "suites.ipc").id == "suite/ipc"
    assert made_from(made, collect, "suites.threads").id == "suite/threads"
    assert not any(name.startswith("suites.") for name in made.step("measure").inputs)


def test_an_app_of_the_users_is_an_input_and_a_step_that_makes_its_archive() -> None:
    text = "opt /l pgo rand ./shop/app.toml:2;ipc. eval plain;opt."
    variants = replace(VARIANTS, app_additions={"ipc": ("ipc",)}, arguments={"rand": "weight"})
    made = compile_program(sound(text), text, variants)
    collect = made.step("opt/collect")
    assert collect.params["apps"] == [{"weight": "2"}, {"name": "ipc"}]
    assert collect.inputs["apps.0.file"] == HostInput("./shop/app.toml")
    programs = made_from(made, collect, "apps.0.programs")
    assert (programs.kind, programs.params) == ("app-programs", {"arch": "x86-64"})
    assert programs.inputs == {"app": HostInput("./shop/app.toml")}
    assert made_from(made, collect, "suites.ipc").id == "suite/ipc"


def test_an_app_of_the_users_is_measured_with_the_archive_that_it_is_trained_with() -> None:
    made = plan(
        "goal worst:./shop/app.toml -1. opt /l pgo rand ./shop/app.toml.\n"
        "eval plain;opt ./shop/app.toml;pipe. eval plain;opt ./shop/app.toml."
    )
    measure = made.step("measure")
    assert measure.params["metrics"] == ["pipe"]
    assert measure.inputs["apps.0.file"] == HostInput("./shop/app.toml")
    programs = made_from(made, measure, "apps.0.programs")
    assert programs == made_from(made, made.step("opt/collect"), "apps.0.programs")
    assert made.step("measure-2").params["metrics"] == []
    report = made.step("report")
    assert report.params["own_groups"] == [{"path": "./shop/app.toml"}]
    assert report.inputs["own_groups.0.file"] == HostInput("./shop/app.toml")
    # Plans without one are as they were.
    assert "apps" not in plan("build /l. eval plain pipe.").step("measure").params


def test_an_app_of_the_users_has_a_script_and_one_archive_for_each_architecture() -> None:
    made = plan(
        "profile /l pgo script ./a.toml:./list. profile /l cspgo script ./a.toml:./list.\n"
        "set arch arm64. profile /l pgo script ./a.toml:./list."
    )
    collect = made.step("profile/collect")
    assert collect.inputs["apps.0.script"] == HostInput("./list")
    assert collect.inputs["apps.0.file"] == HostInput("./a.toml")
    assert kinds(made)["app-programs"] == 2


def test_a_plan_is_the_same_every_time() -> None:
    text = "opt /src cspgo rand kbench O3;ThinLTO.\neval plain;opt."
    assert plan(text) == plan(text)


def test_the_order_of_options_does_not_change_the_build() -> None:
    made = plan("opt /s pgo rand kbench O3;ThinLTO.\nopt /s pgo rand kbench ThinLTO;O3.")
    assert kinds(made)["kernel-build"] == 2


def test_training_without_some_cases_shares_the_instrumented_build() -> None:
    made = plan(
        "opt /src pgo trav kbench.\nset without pipe,proc.\nopt /src pgo trav kbench.\n"
        "set without none.\nopt /src pgo trav kbench.\neval plain;opt;opt2."
    )
    assert made.step("opt2/collect").params["without"] == ["pipe", "proc"]
    assert "without" not in made.step("opt/collect").params
    # Instrumented, plain, and two that use a profile: the third image is the first.
    assert (kinds(made)["kernel-build"], kinds(made)["profile-collect"]) == (4, 2)


def test_only_measurements_of_a_metric_take_its_suite_programs() -> None:
    text = "opt /l pgo rand kbench. eval plain;opt syscall;pipe. eval plain;opt file."
    added = {"pipe": ("ipc", "threads"), "file": ()}
    made = compile_program(sound(text), text, replace(VARIANTS, guest_additions=added))
    assert_well_formed(made)
    assert kinds(made)["suite-programs"] == 2
    with_programs = [s for s in made.steps if s.kind == "measure" and "suites.ipc" in s.inputs]
    without = [s for s in made.steps if s.kind == "measure" and "suites.ipc" not in s.inputs]
    assert (len(with_programs), len(without)) == (1, 1)
    step = made_from(made, with_programs[0], "suites.threads")
    assert (step.id, step.params) == ("suite/threads", {"arch": "x86-64", "suite": "threads"})
    assert all(not name.startswith("suites.") for s in without for name in s.inputs)


def test_builds_that_share_nothing_are_other_steps() -> None:
    program = "set share off.\nopt /src pgo rand kbench O2.\neval plain;opt."
    builds = [step for step in plan(program).steps if step.kind == "kernel-build"]
    assert [step.params["share"] for step in builds] == [False, False, False]
    builds = [s for s in plan(program[15:]).steps if s.kind == "kernel-build"]
    assert not any("share" in step.params for step in builds)


@pytest.mark.parametrize(("value", "noted"), [("note", True), ("refuse", None)])
def test_options_that_do_not_take_are_noted_if_the_program_says_so(
    value: str, noted: bool | None
) -> None:
    made = plan(f"set dropped {value}.\nopt /src pgo rand kbench O2.\neval plain;opt.")
    builds = [step for step in made.steps if step.kind == "kernel-build"]
    assert [step.params.get("note_dropped") for step in builds] == [noted, noted, noted]


def test_exclusions_are_of_the_builds_that_count_or_use_a_profile() -> None:
    text = "opt /src pgo rand kbench.\nopt /src autofdo rand kbench.\neval plain;opt;opt2."
    without, made = plan(text), plan(f"set exclude mm/,kernel/fork.o.\n{text}")
    excluded = {s.id: s.params["exclude"] for s in made.steps if "exclude" in s.params}
    # The kernel in which a device records branches counts nothing itself.
    assert list(excluded) == ["opt/instrument", "opt/build", "opt2/build"]
    assert all(files == ["kernel/fork.o", "mm/"] for files in excluded.values())
    for step in made.steps:
        params = {name: value for name, value in step.params.items() if name != "exclude"}
        assert step.kind == "report" or replace(step, params=params) == without.step(step.id)
    # Nothing is rebuilt for a program without any.
    assert not any("exclude" in step.params for step in without.steps)
    cleared = plan(f"set exclude mm/. set exclude none.\n{text}")
    assert [s for s in cleared.steps if s.kind == "kernel-build"] == [
        s for s in without.steps if s.kind == "kernel-build"
    ]


def test_a_build_on_a_profile_has_exclusions_whatever_it_is_built_for() -> None:
    made = plan("set exclude mm/.\nopt /src autofdo+propeller rand kbench.")
    steps = [step.id for step in made.steps if "exclude" in step.params]
    assert steps == ["opt/instrument2", "opt/build"]
