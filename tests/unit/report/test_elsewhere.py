"""The report where teams see it: as Markdown and as JUnit's XML."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from markdown_it import MarkdownIt
from markdown_it.token import Token

from mepof.gate.verdict import CheckVerdict, GateVerdict, ImageVerdict, Regression
from mepof.report import Report
from mepof.report.junit import junit
from mepof.report.markdown import markdown
from mepof.report.text import amount

from .pages import HOSTILE, every_report
from .samples import golden_report, measurement, report

LOST = Regression(test="futex:wait", status="fail", reason="<late>", failed=1, boots=2)
CHECK = CheckVerdict(
    baseline="plain",
    images=("opt", "size"),
    gates=(
        GateVerdict(
            gate="kselftest",
            boots=2,
            tests=7,
            passing=5,
            skipped=2,
            flaky=(),
            failing=(),
            unbuilt=(),
            notes=(),
            images=(ImageVerdict(image="opt", regressions=(LOST,)), ImageVerdict(image="size")),
        ),
    ),
)


def tokens(made: Report) -> list[Token]:
    """What a page makes of the Markdown."""
    return MarkdownIt("commonmark", {"html": True}).enable("table").parse(markdown(made))


def inline(made: Report) -> Iterator[Token]:
    """What is within its paragraphs and cells."""
    for token in tokens(made):
        yield from token.children or ()


def tables(made: Report) -> list[list[list[str]]]:
    """The text of cells, by table and row."""
    found: list[list[list[str]]] = []
    for token in tokens(made):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type == "inline" and found and token.level >= 4:
            found[-1][-1].append("".join(child.content for child in token.children or ()))
    return found


def test_the_result_comes_first_and_images_have_their_means_and_sizes() -> None:
    made = golden_report()
    assert markdown(made).startswith("**opt, the best of 2 images, does the same work with 10.1 %")
    head, *rows = tables(made)[0]
    assert head[:2] == ["image", "Kernel instructions, counted"]
    by_name = {row[0]: row[1:] for row in rows}
    assert by_name["opt"][0] == "▼ 10.12 % fewer (7.35 to 12.80 % fewer)"
    assert by_name["opt"][-1] == "8.87 MiB (3.33 % larger)"
    assert by_name["plain, the baseline"][-1] == "8.58 MiB"
    assert by_name["broken"][0] == "failed its self-check"


def test_every_case_of_sound_images_is_there() -> None:
    first, second = (table[1:] for table in tables(golden_report())[1:])
    assert [row[0] for row in first] == [
        f"kbench/{case}" for case in ("syscall", "pipe-128", "proc", "file-8k")
    ]
    assert (first[3][3], second[0][1]) == ("▲ 12.28 % more", "▲ 9.78 % more")


def test_one_image_alone_has_its_costs() -> None:
    made = report(measurement("plain"))
    (rows,) = tables(made)[1:]
    value = next(r.value for r in made.cases if r.metric == "kernel_instructions")
    assert rows[0][1] == "Kernel instructions, counted, instructions/operation"
    assert rows[1][:2] == ["kbench/syscall", amount(value)]


def test_what_failed_and_what_to_know_are_listed() -> None:
    made = golden_report().model_copy(update={"checks": (CHECK,), "warnings": ("one boot\nonly",)})
    lines = markdown(made).splitlines()
    assert "- **broken failed its self-check**: pipe-128: sum 3 is not 4" in lines
    assert any(line.startswith("- goal **missed**: opt, text 2: text 3.33 %") for line in lines)
    assert "- kselftest: opt **fails** futex:wait: fail in 1 of 2 boots: \\<late\\>" in lines
    assert "- kselftest: size passes all of them" in lines
    assert "- warning: one boot only" in lines


@every_report
def test_markdown_is_well_formed_and_no_name_is_markup(made: Report) -> None:
    for table in tables(made):
        assert len({len(row) for row in table}) == 1
    assert {token.type for token in inline(made)} <= {
        *("text", "text_special", "strong_open", "strong_close", "em_open", "em_close"),
    }
    collapsed = [token.content for token in tokens(made) if token.type == "html_block"]
    assert all("<script" not in block for block in collapsed)
    assert all(line.isprintable() for line in markdown(made).splitlines())


def suites(made: Report) -> dict[str, list[ET.Element]]:
    """The tests of the XML, by suite."""
    root = ET.fromstring(junit(made))
    for suite in root:
        assert int(suite.get("tests", "")) == len(suite)
        assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("skipped", "0")) == len(suite.findall("testcase/skipped"))
    return {suite.get("name", ""): list(suite) for suite in root}


def failed(cases: list[ET.Element]) -> dict[str, str]:
    """The titles of failures, by test."""
    return {case.get("name", ""): each.get("message", "") for case in cases for each in case}


def test_images_goals_and_gates_are_tests() -> None:
    found = suites(golden_report().model_copy(update={"checks": (CHECK,)}))
    assert list(found) == ["images", "controls", "goals", "kselftest"]
    assert failed(found["images"]) == {
        "broken boots and passes its self-check": "failed its self-check"
    }
    control = "plain, same build, does not differ from itself"
    assert failed(found["controls"]) == {control: "not enough boots to say"}
    assert found["controls"][0].find("skipped") is not None
    assert failed(found["goals"])["opt: text 2"].startswith("text 3.33 % larger; the goal is")
    assert failed(found["kselftest"]) == {
        "opt passes the 5 tests that plain passes": "fails 1 of them",
        "opt: futex:wait": "futex:wait: fail in 1 of 2 boots: <late>",
    }


@every_report
def test_the_xml_is_well_formed(made: Report) -> None:
    assert suites(made)["images"]


def test_hostile_text_is_shown_as_it_is() -> None:
    assert HOSTILE[:25] in "".join(token.content for token in inline(report(measurement(HOSTILE))))
