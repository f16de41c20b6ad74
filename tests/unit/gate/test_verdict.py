"""Which tests an image fails that the baseline passes."""

from mepof.gate.results import Result, Status, TestBoot, TestResults, Unbuilt
from mepof.gate.verdict import CheckVerdict, GateVerdict, verdict_of

PASS: dict[str, Status] = {
    "boot": "pass",
    "futex:wait": "pass",
    "futex:wait/private": "pass",
    "futex:wait/shared": "pass",
    "mm:cow": "fail",
    "mm:cow/thp": "fail",
    "net:tap": "skip",
}


def results(*boots: dict[str, Status], failure: str | None = None) -> TestResults:
    return TestResults(
        gate="kselftest",
        boots=tuple(
            TestBoot(
                seed=seed,
                results=tuple(
                    Result(name=name, status=status, reason="" if status == "pass" else "why")
                    for name, status in boot.items()
                ),
                failure=failure,
            )
            for seed, boot in enumerate(boots, 1)
        ),
        unbuilt=(Unbuilt(name="clone3", reason="needs libcap"),),
    )


def judged(baseline: TestResults, *images: TestResults) -> GateVerdict:
    names = ["plain", *(f"opt{number}" for number in range(len(images)))]
    return verdict_of("kselftest", names, [baseline, *images])


def test_an_image_that_passes_what_the_baseline_passes() -> None:
    verdict = judged(results(PASS, PASS), results(PASS, PASS))
    assert verdict.passed
    assert (verdict.tests, verdict.passing, verdict.skipped, verdict.boots) == (7, 4, 1, 2)
    assert verdict.failing == ("mm:cow/thp",)
    assert verdict.unbuilt[0].name == "clone3"


def test_a_test_that_an_image_fails_is_named_once() -> None:
    worse = {**PASS, "futex:wait": "fail", "futex:wait/shared": "fail"}
    (image,) = judged(results(PASS), results(worse)).images
    assert not image.passed
    (lost,) = image.regressions
    assert lost.line == "futex:wait/shared: fail: why"


def test_a_program_that_fails_without_a_result_of_its_own_is_named() -> None:
    (image,) = judged(results(PASS), results({**PASS, "futex:wait": "fail"})).images
    assert [lost.test for lost in image.regressions] == ["futex:wait"]


def test_a_program_that_ends_early_is_named_and_not_what_it_did_not_reach() -> None:
    worse = {**PASS, "futex:wait": "crash"}
    del worse["futex:wait/shared"]
    (image,) = judged(results(PASS), results(worse)).images
    assert [(lost.test, lost.status) for lost in image.regressions] == [("futex:wait", "crash")]


def test_a_result_that_only_the_baseline_has_is_a_regression() -> None:
    worse = dict(PASS)
    del worse["futex:wait/shared"]
    (image,) = judged(results(PASS), results(worse)).images
    assert [(lost.test, lost.status) for lost in image.regressions] == [
        ("futex:wait/shared", "missing")
    ]


def test_one_boot_is_enough_to_fail() -> None:
    worse = {**PASS, "futex:wait/private": "fail"}
    (image,) = judged(results(PASS, PASS, PASS), results(PASS, worse, PASS)).images
    assert image.regressions[0].line == "futex:wait/private: fail in 1 of 3 boots: why"


def test_a_test_that_varies_on_the_baseline_does_not_count() -> None:
    varying = {**PASS, "futex:wait": "fail", "futex:wait/private": "fail"}
    verdict = judged(results(PASS, varying), results(varying, varying))
    assert verdict.passed
    assert [flaky.test for flaky in verdict.flaky] == ["futex:wait"]
    assert verdict.flaky[0].statuses == ("pass", "fail")


def test_a_test_that_only_the_image_passes_is_reported_and_not_counted() -> None:
    better = {**PASS, "mm:cow": "pass", "mm:cow/thp": "pass"}
    verdict = judged(results(PASS), results(better))
    assert verdict.passed
    assert verdict.images[0].fixed == ("mm:cow/thp",)
    assert verdict.failing == ()


def test_a_skip_in_place_of_a_pass_is_a_regression() -> None:
    (image,) = judged(results(PASS), results({**PASS, "futex:wait": "skip"})).images
    assert [(lost.test, lost.status) for lost in image.regressions] == [("futex:wait", "skip")]


def test_a_kernel_that_goes_down_is_named_once() -> None:
    cut: dict[str, Status] = {"boot": "panic", "futex:wait": "pass", "futex:wait/private": "pass"}
    (image,) = judged(results(PASS), results(cut)).images
    assert [(lost.test, lost.status) for lost in image.regressions] == [("boot", "panic")]


def test_an_image_that_does_not_boot_fails() -> None:
    dead = results({}, failure="the kernel went down: Kernel panic\n  | more")
    (image,) = judged(results(PASS), dead).images
    assert image.failure == (
        "opt0 did not boot with the seed 1: the kernel went down: Kernel panic"
    )
    assert not image.passed


def test_nothing_passes_against_a_baseline_that_is_of_no_use() -> None:
    dead = results({}, failure="the kernel went down: Kernel panic")
    assert not judged(dead, results(PASS)).passed
    down: dict[str, Status] = {**PASS, "boot": "hang"}
    assert "the baseline plain went down: why" in str(judged(results(down), results(PASS)).images)
    none = results({"boot": "pass"})
    (image,) = judged(none, none).images
    assert image.failure == "the baseline plain passes no test of kselftest"


def test_a_verdict_survives_its_file() -> None:
    worse = {**PASS, "futex:wait/private": "fail"}
    gate = judged(results(PASS), results(worse), results(PASS))
    check = CheckVerdict(baseline="plain", images=("opt0", "opt1"), gates=(gate,))
    assert CheckVerdict.model_validate_json(check.model_dump_json()) == check
    assert not check.passed
    assert [image.passed for image in gate.images] == [False, True]
