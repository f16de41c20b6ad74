"""Cases against each other: the page, the terminal, and the table for spreadsheets."""

from __future__ import annotations

import csv
import io

from mepof.report.csv import COMPARISON_COLUMNS, comparisons_csv
from mepof.report.html import render

from .pages import HOSTILE, REPORTS, Page, terminal
from .samples import KVM, PAIRS, golden_report, measurement, report


def test_the_page_has_the_costs_of_both_cases_and_of_both_sides() -> None:
    made = golden_report()
    html = render(made)
    page = Page(html).text
    assert '<a href="#comparisons">' in html
    assert "Comparisons of the program" in page
    # The cost of both sides, of the kernel and of user space, and the result.
    assert "pipe-128: 2,455.2 (kernel 2,415.2, user 40.000)" in page
    assert "kbench/syscall: 341.90" in page
    assert "7.1810 times" in page
    assert "7.1692 to 7.1928 times" in page
    assert "instructions (counted)" in page
    assert "cycles (modelled)" in page
    assert "+9,286.7" in page
    # A suite's own are folded away.
    assert "<summary>Comparisons of the suite kbench</summary>" in html
    assert "cycles per data TLB miss" in page
    assert "362.30 data TLB misses" in page
    assert "+1,003.0" in page
    assert (
        "not measured: plain cannot run kbench/binder: CONFIG_ANDROID_BINDERFS is missing" in page
    )
    assert 'id="comparisons"' not in render(REPORTS["equal"])


def test_the_terminal_has_what_the_program_asked_for() -> None:
    text = terminal(golden_report(), width=200)
    assert (
        "pipe-128 against syscall, plain, instructions: 7.1810 times "
        "(counted; 7.1692 to 7.1928 times)"
    ) in text
    miss = "the cost of a data TLB miss, opt, cycles per data TLB miss"
    assert f"{miss}: +992.88 (modelled; +992.88 to +992.88)" in text
    assert (
        "binder against pipe-128, opt, instructions: not measured: opt cannot run kbench/binder"
    ) in text
    assert "more comparisons" not in text


def test_many_comparisons_of_suites_are_left_to_the_page() -> None:
    many = [PAIRS[2].model_copy(update={"title": f"number {n}"}) for n in range(20)]
    images = [measurement(name, core="skylake") for name in ("plain", "opt")]
    made = report(*images, pairs=many)
    text = terminal(made)
    assert len(made.comparisons) == 40
    assert "32 more comparisons of cases, see report.html" in text
    assert "number 19" not in text
    assert "number 19" in render(made)


def test_figures_of_hardware_are_called_native() -> None:
    pairs = [PAIRS[0].model_copy(update={"metrics": ("instructions", "guest_time")})]
    made = report(measurement("plain", device=KVM, user=None), pairs=pairs)
    (first, time) = made.comparisons
    assert first.native
    page = Page(render(made)).text
    assert "instructions (counted, native)" in page
    assert "guest time (timed, native)" in page
    # The device did not count the user's part.
    assert "(kernel alone)" in page
    assert time.both.value is not None


def test_a_hostile_title_stays_text() -> None:
    pair = PAIRS[0].model_copy(update={"title": HOSTILE})
    made = report(measurement("plain"), pairs=[pair])
    assert "<script" not in render(made)
    assert "\x1b" not in terminal(made)


def test_comparisons_csv_has_a_row_for_each_side() -> None:
    rows = [*csv.DictReader(io.StringIO(comparisons_csv(golden_report())))]
    assert tuple(rows[0]) == COMPARISON_COLUMNS
    ours = [
        row
        for row in rows
        if (row["image"], row["title"], row["metric"])
        == ("plain", "pipe-128 against syscall", "instructions")
    ]
    assert [row["side"] for row in ours] == ["kernel", "user", "both"]
    assert [float(row["value"]) for row in ours][1] == 1
    assert {(row["first"], row["second"]) for row in ours} == {
        ("kbench/pipe-128", "kbench/syscall")
    }
    # Latency has no sides.
    latency = [r for r in rows if r["metric"] == "latency" and r["image"] == "plain"]
    assert [row["side"] for row in latency] == ["both"]
    missing = [row for row in rows if row["reason"]]
    assert {row["value"] for row in missing} == {""}
    assert all(row["side"] == "both" for row in missing)
