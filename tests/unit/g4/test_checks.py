"""``check``: the kernel's own tests on images."""

from __future__ import annotations

import pytest

from mepof.g4.checks import gates_of
from mepof.plan.model import Plan, StepInput

from .planning import plan
from .reading import headlines, sound

OPT = "opt debian:linux-source-6.12 pgo rand kbench O2. "


def inputs(made: Plan, step: str) -> dict[str, object]:
    return {
        name: given.step if isinstance(given, StepInput) else given.path
        for name, given in made.step(step).inputs.items()
    }


def test_kselftests_run_on_the_images_themselves() -> None:
    made = plan(OPT + "check plain.img;opt.img.")
    assert inputs(made, "opt/tests/kselftest") == {
        "guest": "guest",
        "kernel": "opt/build",
        "programs": "kselftest",
    }
    assert inputs(made, "check") == {
        "gates.0.results.0": "plain/tests/kselftest",
        "gates.0.results.1": "opt/tests/kselftest",
    }
    assert made.step("opt/tests/kselftest").params["boots"] == 3
    assert [r.kind for r in made.results if r.name == "check"] == ["check"]


def test_tests_run_on_the_cpus_that_are_set() -> None:
    made = plan("set cpus 4. " + OPT + "check plain.img;opt.img kselftest;kunit.")
    assert {s.params["cpus"] for s in made.steps if s.kind == "kernel-tests"} == {4}
    one = plan(OPT + "check plain.img;opt.img.")
    assert "cpus" not in one.step("opt/tests/kselftest").params  # its identity stays


def test_kunit_runs_on_a_build_with_the_same_profile() -> None:
    made = plan(OPT + "check plain.img;opt.img kunit.")
    ours, image = made.step("opt/kunit"), made.step("opt/build")
    assert ours.inputs == image.inputs
    assert ours.params == {**image.params, "config": ["slim", "kunit"]}
    assert inputs(made, "opt/tests/kunit")["kernel"] == "opt/kunit"
    assert inputs(made, "plain/tests/kunit")["kernel"] == "plain/kunit"


def test_an_image_that_has_kunit_is_not_built_again() -> None:
    made = plan("set config slim+kunit. " + OPT + "check plain.img;opt.img kunit.")
    assert inputs(made, "opt/tests/kunit")["kernel"] == "opt/build"
    assert not any(
        step.id.endswith("/kunit") and step.kind == "kernel-build" for step in made.steps
    )


def test_reports_below_a_check_have_its_results() -> None:
    made = plan(OPT + "check plain.img;opt.img. eval plain.img;opt.img. ")
    assert inputs(made, "report")["checks.0"] == "check"
    above = plan(OPT + "eval plain.img;opt.img. check plain.img;opt.img.")
    assert "checks.0" not in inputs(above, "report")


def test_the_parts_of_a_gate() -> None:
    *_, statement = sound(OPT + "check plain;opt kselftest:mm;kselftest:exec;kunit.").statements
    assert gates_of(statement) == {"kselftest": ("exec", "mm"), "kunit": ("",)[:0]}  # type: ignore[arg-type]
    *_, whole = sound(OPT + "check plain;opt kselftest:mm;kselftest.").statements
    assert gates_of(whole) == {"kselftest": ()}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        ("check opt.img.", "`check` needs at least two images"),
        ("check plain.img;opt.img kselftests.", "unknown gate `kselftests`"),
        ("check plain.img;opt.img kselftest:futexes.", "unknown collection `futexes`"),
        ("check plain.img;opt.img kselftest:.", "the name of a collection is missing"),
        ("check plain.img;opt.img kunit:list.", "`kunit` has no parts"),
        ("check plain.img;opt.img kunit;kunit.", "`kunit` is given twice"),
        ("check ./a.img;./b.img.", "these images are files"),
        ("check plain.img;opt.img;opt.", "`opt` is named twice"),
        ("set name gate. check plain.img;opt.img.", "`check` makes no named result"),
        (
            "opt debian:linux-source-6.12 autofdo+propeller rand kbench. "
            "check plain.img;opt2.img kunit.",
            "`opt2.img` cannot be built with KUnit",
        ),
    ],
)
def test_what_is_wrong_with_a_check(text: str, headline: str) -> None:
    (found,) = headlines(OPT + text)
    assert headline in found


def test_a_profile_that_fits_one_build_needs_kunit_in_that_build() -> None:
    sound(
        "set config slim+kunit. opt debian:linux-source-6.12 autofdo+propeller rand kbench. "
        "check plain.img;opt.img kunit."
    )
