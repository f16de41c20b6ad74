"""Whether images pass the tests that the baseline passes: ``check.json``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, computed_field

from mepof.document import Document
from mepof.gate.boots import BOOT
from mepof.gate.results import Gate, Result, Status, TestResults, Unbuilt

Observed = Literal[Status, "missing"]
"""The result of a test in a boot; ``missing`` if the boot has none."""


class _Record(BaseModel):
    # What is computed is written as well, and ignored when it is read.
    model_config = ConfigDict(frozen=True, extra="ignore")


class Regression(_Record):
    """A test that the baseline passes in every boot, and the image does not.

    Attributes:
        status: in the first of the boots in which it did not pass.
        reason: what the test said in it.
        failed: in how many boots it did not pass.
        boots: of the image.
    """

    test: str
    status: Observed
    reason: str
    failed: int
    boots: int

    @property
    def line(self) -> str:
        """The regression in a line."""
        often = f" in {self.failed} of {self.boots} boots" if self.boots > 1 else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.test}: {self.status}{often}{reason}"


class Flaky(_Record):
    """A test whose result on the baseline depends on the boot, so that it does not count.

    Attributes:
        statuses: by boot.
    """

    test: str
    statuses: tuple[Observed, ...]


class ImageVerdict(_Record):
    """How an image does in a gate.

    Attributes:
        failure: why its tests cannot be compared; None if they can.
        fixed: tests that it passes in every boot, and the baseline in none.
    """

    image: str
    failure: str | None = None
    regressions: tuple[Regression, ...] = ()
    fixed: tuple[str, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def passed(self) -> bool:
        """Whether it passes every test that the baseline passes."""
        return self.failure is None and not self.regressions


class GateVerdict(_Record):
    """The result of one gate.

    Attributes:
        boots: of each image.
        tests: how many results the baseline has.
        passing: how many tests the baseline passes in every boot; these count.
        skipped: how many it skips in every boot.
        flaky: tests that do not count.
        failing: tests that no image passes.
        unbuilt: test programs that could not be compiled.
        notes: what is wrong with the tests' output.
    """

    gate: Gate
    boots: int
    tests: int
    passing: int
    skipped: int
    flaky: tuple[Flaky, ...]
    failing: tuple[str, ...]
    unbuilt: tuple[Unbuilt, ...]
    notes: tuple[str, ...]
    images: tuple[ImageVerdict, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def passed(self) -> bool:
        """Whether all images passed."""
        return all(image.passed for image in self.images)


class CheckVerdict(Document):
    """The result of a ``check``.

    Attributes:
        images: without the baseline.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    file: ClassVar[str] = "check.json"

    baseline: str
    images: tuple[str, ...]
    gates: tuple[GateVerdict, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def passed(self) -> bool:
        """Whether all images passed all gates."""
        return all(gate.passed for gate in self.gates)


def verdict_of(gate: Gate, images: Sequence[str], results: Sequence[TestResults]) -> GateVerdict:
    """Compare the images' results with those of the first, test by test.

    Args:
        images: names, the baseline first.
        results: of the same tests, by image.
    """
    seen = [_by_test(each) for each in results]
    first, *others = seen
    flaky = {test: statuses for test, statuses in first.items() if len(set(statuses)) > 1}
    stable = {test: found[0] for test, found in first.items() if test not in flaky}
    unusable = _unusable(images[0], results[0], stable)
    verdicts: list[ImageVerdict] = []
    for image, given, found in zip(images[1:], results[1:], others, strict=True):
        failure = unusable or _did_not_boot(image, given)
        if failure is not None:
            verdicts.append(ImageVerdict(image=image, failure=failure))
        else:
            verdicts.append(
                ImageVerdict(
                    image=image,
                    regressions=tuple(_regressions(stable, given, found)),
                    fixed=tuple(t for t in _failing(stable) if _passes(found.get(t, ()))),
                )
            )
    fixed = {test for verdict in verdicts for test in verdict.fixed}
    return GateVerdict(
        gate=gate,
        boots=len(results[0].boots),
        tests=len(first),
        passing=sum(status == "pass" for status in stable.values()),
        skipped=sum(status == "skip" for status in stable.values()),
        flaky=tuple(Flaky(test=test, statuses=flaky[test]) for test in _outer(flaky)),
        failing=tuple(test for test in _failing(stable) if test not in fixed),
        unbuilt=results[0].unbuilt,
        notes=tuple(_notes(images, results)),
        images=tuple(verdicts),
    )


def _by_test(results: TestResults) -> dict[str, tuple[Observed, ...]]:
    """The statuses of every test, boot by boot, in the order in which the tests first ran."""
    boots = [{result.name: result.status for result in boot.results} for boot in results.boots]
    names = dict.fromkeys(name for boot in boots for name in boot)
    return {name: tuple(boot.get(name, "missing") for boot in boots) for name in names}


def _unusable(baseline: str, results: TestResults, stable: Mapping[str, Observed]) -> str | None:
    """Why nothing can be compared with the baseline."""
    failure = _did_not_boot(baseline, results)
    if failure is not None:
        return f"the baseline {failure}"
    if stable.get(BOOT) not in (None, "pass"):
        return f"the baseline {baseline} went down: {_first(results, BOOT).reason}"
    if not any(status == "pass" for test, status in stable.items() if test != BOOT):
        return f"the baseline {baseline} passes no test of {results.gate}"
    return None


def _did_not_boot(image: str, results: TestResults) -> str | None:
    for boot in results.boots:
        if boot.failure is not None:
            why = boot.failure.partition("\n")[0]
            return f"{image} did not boot with the seed {boot.seed}: {why}"
    return None


def _failing(stable: Mapping[str, Observed]) -> Iterator[str]:
    """Tests that the baseline runs and does not pass, without those around them."""
    bad = {test: status for test, status in stable.items() if status not in ("pass", "skip")}
    around = {above for test in bad for above in _around(test)}
    return (test for test in bad if test not in around)


def _passes(statuses: Sequence[Observed]) -> bool:
    return bool(statuses) and all(status == "pass" for status in statuses)


def _regressions(
    stable: Mapping[str, Observed],
    results: TestResults,
    found: Mapping[str, tuple[Observed, ...]],
) -> Iterator[Regression]:
    boots = len(results.boots)
    missing: tuple[Observed, ...] = tuple("missing" for _ in results.boots)
    worse = {
        test: found.get(test, missing)
        for test, status in stable.items()
        if status == "pass" and not _passes(found.get(test, missing))
    }
    for test in worse:
        if _explained(test, worse):
            continue
        bad = [status for status in worse[test] if status != "pass"]
        yield Regression(
            test=test,
            status=bad[0],
            reason=_first(results, test).reason,
            failed=len(bad),
            boots=boots,
        )


def _explained(test: str, worse: Mapping[str, tuple[Observed, ...]]) -> bool:
    """Whether another regression says the same: that of a test within it if it only failed, or
    that of the test around it, or of the boot, if it has no result."""
    if set(worse[test]) <= {"pass", "missing"}:
        return test != BOOT and any(above in worse for above in (BOOT, *_around(test)))
    if set(worse[test]) <= {"pass", "fail"}:
        within = (other for other in worse if other.startswith(f"{test}/"))
        return any(set(worse[other]) - {"pass", "missing"} for other in within)
    return False


def _around(test: str) -> Iterator[str]:
    """The tests that a test is within, by their names."""
    parts = test.split("/")
    return ("/".join(parts[:length]) for length in range(1, len(parts)))


def _outer(tests: Mapping[str, object]) -> Iterator[str]:
    """Some tests without those within others of them."""
    return (test for test in tests if not any(above in tests for above in _around(test)))


def _first(results: TestResults, test: str) -> Result:
    """The first result of a test that is not a pass."""
    found = (r for boot in results.boots for r in boot.results if r.name == test)
    bad = (result for result in found if result.status != "pass")
    return next(bad, Result(name=test, status="fail"))


def _notes(images: Sequence[str], results: Sequence[TestResults]) -> Iterator[str]:
    """Remarks on the output of tests, once for each image."""
    for image, given in zip(images, results, strict=True):
        for note in dict.fromkeys(note for boot in given.boots for note in boot.notes):
            yield f"{image}: {note}"
