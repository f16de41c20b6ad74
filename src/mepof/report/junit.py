"""The report as JUnit's XML, from which Jenkins, GitLab and others show what failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from mepof.gate.verdict import GateVerdict
from mepof.report.model import Report
from mepof.report.text import printable


@dataclass(frozen=True)
class Verdict:
    """A test as JUnit has it.

    Attributes:
        failure: why it failed, None if it did not. The first line is its title.
        undecided: why it neither passed nor failed.
    """

    name: str
    failure: str | None = None
    undecided: str | None = None


def junit(report: Report) -> str:
    """A test for each image, control, goal, and gate of an image, and for each test that an image
    fails and the baseline passes."""
    root = ET.Element("testsuites", name="mepof")
    for name, verdicts in _suites(report).items():
        failed = sum(verdict.failure is not None for verdict in verdicts)
        undecided = sum(verdict.undecided is not None for verdict in verdicts)
        counts = {"name": name, "tests": str(len(verdicts)), "failures": str(failed)}
        counts |= {"skipped": str(undecided)} if undecided else {}
        suite = ET.SubElement(root, "testsuite", counts)
        for verdict in verdicts:
            names = {"name": printable(verdict.name), "classname": f"mepof.{name}"}
            case = ET.SubElement(suite, "testcase", names)
            if verdict.failure is not None:
                text = printable(verdict.failure, keep="\n")
                ET.SubElement(case, "failure", message=text.partition("\n")[0]).text = text
            elif verdict.undecided is not None:
                ET.SubElement(case, "skipped", message=verdict.undecided)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _suites(report: Report) -> Mapping[str, list[Verdict]]:
    """The tests by what they are about, without what the program did not ask for."""
    suites = {
        "images": [
            Verdict(
                f"{image.name} boots and passes its self-check",
                None if image.sound else f"{image.how_it_failed}\n{image.self_check}",
            )
            for image in report.images
        ],
        "controls": [
            Verdict(
                f"{control.image}, {control.kind}, does not differ from itself",
                None if control.passed else "it does, or did not run: see the warnings",
                "not enough boots to say" if control.undecided else None,
            )
            for control in report.controls
        ],
        "goals": [
            Verdict(f"{goal.image}: {goal.title}", None if goal.met else goal.reason)
            for goal in report.goals
        ],
    }
    for check in report.checks:
        for gate in check.gates:
            suites.setdefault(gate.gate, []).extend(_gate(gate, check.baseline))
    return {name: verdicts for name, verdicts in suites.items() if verdicts}


def _gate(gate: GateVerdict, baseline: str) -> Iterator[Verdict]:
    for image in gate.images:
        failure = image.failure
        if failure is None and image.regressions:
            failure = f"fails {len(image.regressions)} of them"
        passes = f"passes the {gate.passing} tests that {baseline} passes"
        yield Verdict(f"{image.image} {passes}", failure)
        for lost in image.regressions:
            yield Verdict(f"{image.image}: {lost.test}", lost.line)
