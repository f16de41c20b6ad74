"""What people see: the page and the terminal summary."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from mepof.evaluate.report import Report, summary
from mepof.evaluate.report.html import render
from mepof.evaluate.report.plot import Point, improvement_plot
from mepof.evaluate.report.text import amount, duration, interval, percent, printable, size

from .samples import GOLDEN, PROVENANCE, golden_report, measurement, report

HOSTILE = "<script>alert(1)</script>\"'&[red]\x1b[31m\u202e"
DEAD = measurement("dead", factors=(), booted=False, self_check="panic: no root")


class Page(HTMLParser):
    """A page's elements, and whether every one of them is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.misnested: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.misnested.append(tag)

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


REPORTS = {
    "full": golden_report(),
    "single": report(measurement("plain")),
    "failed": report(measurement("plain"), DEAD),
    "one boot": report(measurement("plain", factors=(1.0,)), measurement(factors=(0.9,))),
    "equal": report(measurement("plain"), measurement()),
    "hostile": report(
        measurement(HOSTILE),
        measurement(f"{HOSTILE}2", costs={HOSTILE: 1.0}, self_check="passed"),
        measurement("x", self_check=HOSTILE),
        provenance=PROVENANCE.model_copy(update={"program": HOSTILE, "kernel": HOSTILE}),
    ),
}
every_report = pytest.mark.parametrize("made", REPORTS.values(), ids=REPORTS.keys())


def terminal(made: Report, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(summary(made, Path("out/demo")))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_page_is_the_golden_one() -> None:
    """Regenerate with ``python tests/unit/evaluate/samples.py``, and look at it."""
    assert render(golden_report()) == (GOLDEN / "report.html").read_text()


@every_report
def test_every_element_is_closed_and_every_id_is_unique(made: Report) -> None:
    page = Page(render(made))
    assert page.open == []
    assert page.misnested == []
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        assert set((attributes.get("aria-labelledby") or "").split()) <= set(ids)


@every_report
def test_the_page_needs_nothing_outside_it(made: Report) -> None:
    text = render(made)
    page = Page(text)
    assert not re.search(r"https?:|@import|url\(", text)
    loading = {"src", "href", "srcset", "data", "action", "xlink:href", "poster"}
    assert all(not loading & set(attributes) for _, attributes in page.tags)
    assert not {"script", "link", "iframe", "img"} & {tag for tag, _ in page.tags}


@every_report
def test_tables_and_drawings_speak_to_screen_readers(made: Report) -> None:
    page = Page(render(made))
    tags = [tag for tag, _ in page.tags]
    assert tags.count("table") == tags.count("caption") > 0
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
    for tag, attributes in page.tags:
        if tag == "svg" and attributes.get("role") == "img":
            assert attributes["aria-labelledby"]
    assert sum(a.get("role") == "img" for _, a in page.tags) == tags.count("desc")


def test_hostile_names_stay_text() -> None:
    text = render(REPORTS["hostile"])
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "<script>alert(1)</script>" in Page(text).text


def test_the_terminal_is_not_driven_by_names() -> None:
    text = terminal(REPORTS["hostile"], width=200)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]" in text


def test_a_failed_image_is_shown_first_and_has_no_figure() -> None:
    page = Page(render(REPORTS["failed"]))
    assert "✖ dead did not boot" in page.text
    assert "panic: no root" in page.text
    assert "faster" not in page.text.split("Method")[0]
    assert not any(a.get("class") == "figure" for _, a in page.tags)
    text = terminal(REPORTS["failed"])
    assert "dead: DID NOT BOOT: panic: no root" in text


def test_a_broken_image_has_no_place_beside_the_good_ones() -> None:
    page = Page(render(golden_report()))
    assert "broken failed its self-check" in page.text
    captions = re.findall(r"<caption>(.*?)</caption>", render(golden_report()))
    assert any("opt against plain" in c for c in captions)
    assert not any("broken against" in c for c in captions)
    assert "broken against" not in terminal(golden_report())


def test_the_page_says_what_was_found_and_how_to_do_it_again() -> None:
    page = Page(render(golden_report()))
    for expected in (
        "+11.26 %",
        "▲ faster",
        "▼ slower",
        "mepof run quickstart.g4 --out out/demo",
        "opt debian:linux-source-6.12 pgo rand kbench O2.",
        "Debian clang version 22.1.0",
        "difference of more than 0.1 %",
        "5 min",
    ):
        assert expected in page.text


def test_the_terminal_summary_fits_eighty_columns() -> None:
    text = terminal(golden_report())
    assert max(map(len, text.splitlines())) <= 80
    assert "geometric mean" in text
    assert "+11.26 %" in text
    assert "out/demo/report.html" in text


def test_a_single_image_shows_its_costs() -> None:
    text = terminal(REPORTS["single"])
    assert "300.00" in text
    assert "geometric mean" not in text


def test_a_plot_keeps_everything_inside_and_zero_on_the_axis() -> None:
    points = [Point(0, 11.0, (10.0, 12.0), "faster"), Point(1, -3.0, (-4.0, -2.0), "slower")]
    plot = improvement_plot([("pipe", points)], points[:1])
    assert [t.label for t in plot.tracks] == ["pipe", "Geometric mean"]
    better, worse = plot.tracks[0].marks
    assert 0 < worse.low < worse.x < worse.high < plot.zero < better.low < better.x < better.high
    assert better.high < 100
    assert (better.bar, worse.bar) == (plot.zero, worse.x)
    assert dict(plot.ticks)[plot.zero] == "0"
    assert all(m.y < plot.bottom for t in plot.tracks for m in t.marks)


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.003, 7.0, -250.0, 1e6])
def test_a_plot_of_any_scale_has_few_round_ticks(value: float) -> None:
    plot = improvement_plot([("a", [Point(0, value, (value, value), "faster")])], [])
    assert 1 <= len(plot.ticks) <= 6
    assert all(0 <= x <= 100 for x, _ in plot.ticks)


def test_numbers_read_as_people_write_them() -> None:
    assert [percent(v) for v in (9.526, -0.004, -3.0, None)] == [
        "+9.53 %",
        "0.00 %",
        "\N{MINUS SIGN}3.00 %",
        "\N{EN DASH}",
    ]
    assert interval((-1.0, 2.5)) == "\N{MINUS SIGN}1.00 to +2.50 %"
    assert [amount(v) for v in (180_000.0, 301.444, 0.5, 0.0)] == [
        "180,000",
        "301.44",
        "0.50000",
        "0.0000",
    ]
    assert [duration(v) for v in (4.2, 59.97, 252, 7500)] == [
        "4.2 s",
        "1 min 00 s",
        "4 min 12 s",
        "2 h 05 min",
    ]
    assert [size(v) for v in (12, 2048, 9_000_000)] == ["12 B", "2.0 KiB", "8.58 MiB"]
    assert printable("a\nb\x1b\u202e") == "a\\nb\\x1b\\u202e"


def test_controls_training_and_outliers_are_shown() -> None:
    page = Page(render(golden_report()))
    assert "the same build, other seeds" in page.text
    assert page.text.count("✔ nothing was found to differ") == 2
    assert "of trained cases" in page.text
    assert "of others" in page.text
    assert "plain with seed 5: +2.95 %" in page.text
    text = terminal(golden_report())
    assert "control, plain relinked: nothing was found to differ" in text
    assert "▲ +11.26 %" in text
    assert "▼ " in text
