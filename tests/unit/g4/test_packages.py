"""Images that become packages."""

from __future__ import annotations

import pytest

from mepof.executor.programs import compiled
from mepof.g4 import Source
from mepof.plan.model import HostInput, Plan, StepInput

OPT = "opt debian:linux-source-6.12 pgo rand kbench. "


def plan(text: str) -> Plan:
    return compiled(Source("p.g4", text))


def results(made: Plan) -> list[tuple[str, str]]:
    return [(result.name, result.kind) for result in made.results]


@pytest.mark.parametrize("form", ["deb", "rpm", "pkg"])
def test_each_image_is_packaged_under_a_release_of_its_own(form: str) -> None:
    made = plan(f"set package {form}. set revision 3. {OPT}build debian:linux-source-6.12 O3.")
    assert ("opt", "package") in results(made)
    assert ("build", "package") in results(made)
    step = made.step("opt/package")
    assert step.inputs["kernel"] == StepInput("opt/build")
    assert (step.params["format"], step.params["revision"]) == (form, 3)
    assert made.step("opt/build").params["suffix"] == "-mepof-opt"
    assert made.step("build/build").params["suffix"] == "-mepof-build"
    # What is trained is not installed.
    assert "suffix" not in made.step("opt/instrument").params
    assert made.step("opt/build").params["installed"] is True
    assert "installed" not in made.step("opt/instrument").params


def test_a_boot_image_keeps_the_release_that_modules_ask_for() -> None:
    made = plan(f"set package bootimg:./boot.img. {OPT}")
    assert made.step("opt/package").inputs["given"] == HostInput("./boot.img")
    assert not {"suffix", "installed"} & set(made.step("opt/build").params)


def test_a_package_of_the_source_knows_how_its_kernel_was_built() -> None:
    made = plan(f"set package source. {OPT}build debian:linux-source-6.12 O3.")
    build, packaged = made.step("opt/build"), made.step("opt/package")
    assert packaged.params["built"] == build.params
    assert packaged.inputs == {
        "kernel": StepInput("opt/build"),
        **{f"built.{name}": given for name, given in build.inputs.items()},
    }
    assert "suffix" not in build.params
    assert made.step("build/package").inputs["built.source"] == StepInput("source")


def test_nothing_is_packaged_unless_a_program_says_so() -> None:
    made = plan(f"{OPT}set package deb. {OPT}set package none. {OPT}")
    assert [name for name, kind in results(made) if kind == "package"] == ["opt2"]
