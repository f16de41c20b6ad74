"""What people see: the page and the terminal summary."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from mepof.measure.measurement import Measurement, SizeBytes
from mepof.report import Report
from mepof.report.html import render
from mepof.report.text import (
    amount,
    duration,
    figure,
    interval,
    percent,
    plain_percent,
    points,
    printable,
    relative,
    relative_interval,
    size,
)

from .pages import REPORTS, Page, every_report, terminal
from .samples import GOLDEN, KVM, golden_report, measurement, report


def test_the_page_is_the_golden_one() -> None:
    """Regenerate with ``python tests/unit/report/samples.py``, and look at it."""
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
    ids = {a["id"] for _, a in page.tags if "id" in a}
    for tag, attributes in page.tags:
        if tag == "a":
            assert str(attributes.pop("href")).removeprefix("#") in ids
        assert not loading & set(attributes)
    assert not {"script", "link", "iframe", "img"} & {tag for tag, _ in page.tags}


@every_report
def test_tables_and_drawings_are_described_for_screen_readers(made: Report) -> None:
    page = Page(render(made))
    tags = [tag for tag, _ in page.tags]
    assert tags.count("table") == tags.count("caption") > 0
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
    for tag, attributes in page.tags:
        if tag == "svg" and attributes.get("role") == "img":
            assert attributes["aria-labelledby"]
    assert sum(a.get("role") == "img" for _, a in page.tags) == tags.count("desc")
    for tag, around, attributes in page.outlines:
        if tag == "svg" and "svg" not in around:
            assert (attributes.get("role") == "img") != (attributes.get("aria-hidden") == "true")


@every_report
def test_headings_and_landmarks_structure_the_page(made: Report) -> None:
    page = Page(render(made))
    tags = [tag for tag, _ in page.tags]
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert [tags.count(name) for name in ("header", "nav", "main")] == [1, 1, 1]
    for tag, attributes in page.tags:
        if tag == "section":
            assert attributes["aria-labelledby"]


def test_everything_that_scrolls_is_reachable_by_keyboard() -> None:
    page = Page(render(golden_report()))
    scrolling = [a for _, a in page.tags if a.get("class") == "scroll"]
    assert scrolling
    assert all(a["tabindex"] == "0" and a["aria-label"] for a in scrolling)


def luminance(colour: str) -> float:
    """WCAG 2.2's relative luminance."""
    digits = colour if len(colour) == 6 else "".join(2 * digit for digit in colour)
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """WCAG 2.2's contrast ratio."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_colour_contrasts_with_its_background(scheme: int) -> None:
    """Level AA of WCAG requires 4.5 for text; letters in bars have the paper's colour."""
    styles = Page(render(golden_report())).styles
    roots = re.findall(r":root \{(.*?)\}", styles, re.DOTALL)
    assert len(roots) == 2
    colours = dict(re.findall(r"--([\w-]+): #([0-9a-f]+)", roots[scheme]))
    assert colours.keys() == dict(re.findall(r"--([\w-]+): #([0-9a-f]+)", roots[0])).keys()
    series = [name for name in colours if re.fullmatch(r"s\d|base", name)]
    on_paper = [(name, "paper") for name in ("ink", "soft", "good", "bad", "link", *series)]
    on_panel = [(name, "panel") for name in ("ink", "soft", "good", "bad")]
    on_notice = [("ink", "warn-paper"), ("ink", "bad-paper"), ("bad", "bad-paper")]
    # A list of goals has met and missed ones.
    on_notice += [("ink", "good-paper"), ("good", "good-paper"), ("good", "bad-paper")]
    for text, ground in (*on_paper, *on_panel, *on_notice):
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    levels = [luminance(colours[f"h{level}"]) for level in range(1, 7)]
    assert levels == sorted(levels, reverse=scheme == 0)


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


def test_lines_of_a_warning_are_indented() -> None:
    made = golden_report().model_copy(
        update={"warnings": ("it panicked:\nRIP: 0010:pipe_write\n",)}
    )
    assert "warning: it panicked:\n    RIP: 0010:pipe_write\n" in terminal(made)


def test_a_failed_image_is_shown_first_and_has_no_figure() -> None:
    page = Page(render(REPORTS["failed"]))
    assert "✖ dead did not boot" in page.text
    assert "panic: no root" in page.text
    assert "fewer" not in page.text.split("Method")[0]
    assert "faster" not in page.text.split("Method")[0]
    assert not any(a.get("class") == "figure" for _, a in page.tags)
    text = terminal(REPORTS["failed"])
    assert "dead: DID NOT BOOT: panic: no root" in text


def test_the_result_is_one_sentence() -> None:
    sentences = {
        "full": "opt, the best of 2 images, does the same work with 10.1 % fewer kernel "
        "instructions than plain, on average over 4 cases.",
        "failed": "Nothing was compared: dead did not boot.",
        "single": "plain booted and passed its self-check. There was nothing to compare it with.",
        "equal": "opt does the same work with as many kernel instructions as plain, to within "
        "1 %, on average over 4 cases.",
        "one boot": "opt cannot yet be distinguished from plain: there is not enough data on its "
        "kernel instructions, on average over 4 cases.",
    }
    for name, sentence in sentences.items():
        assert sentence in Page(render(REPORTS[name])).text.replace("\N{NO-BREAK SPACE}", " ")


def test_the_sentence_is_about_what_is_proven() -> None:
    def sentence(*images: Measurement) -> str:
        page = render(report(measurement("plain"), *images))
        return Page(page).text.replace("\N{NO-BREAK SPACE}", " ")

    # Fewer on average, but the boots disagree.
    unsure = measurement("unsure", factors=(0.5, 1.1, 0.9, 1.1, 1.1))
    proven = "opt, the best of 2 images, does the same work with 8.0 % fewer kernel instructions"
    assert proven in sentence(unsure, measurement("opt", factors=[0.92] * 5))
    same = "opt, the best of 2 images, does the same work with as many kernel instructions"
    assert same in sentence(unsure, measurement("opt"))
    text = sentence(unsure, measurement("worse", factors=[1.5] * 5))
    assert "unsure cannot yet be distinguished from plain" in text


def test_every_verdict_has_a_word_and_a_sign() -> None:
    page = Page(render(golden_report()))
    for words in ("▼ fewer", "▲ more", "= no difference", "? not enough data"):
        assert words in page.text


def test_a_broken_image_is_not_shown_beside_the_sound_ones() -> None:
    page = Page(render(golden_report()))
    assert "broken failed its self-check" in page.text
    captions = re.findall(r"<caption>.*?</caption>", render(golden_report()))
    assert any("opt against plain" in c for c in captions)
    assert not any("broken against" in c for c in captions)
    assert "broken against" not in terminal(golden_report())


def test_the_page_has_the_result_and_how_to_reproduce_it() -> None:
    page = Page(render(golden_report()))
    for expected in (
        "10.12 % fewer",
        "+11.26 %",
        "▼ fewer",
        "▲ more",
        "▼ less",
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
    assert "10.12 % fewer" in text
    assert "out/demo/report.html" in text


def test_a_single_image_shows_its_costs() -> None:
    text = terminal(REPORTS["single"])
    assert "300.00" in text
    assert "geometric mean" not in text


def test_numbers_read_as_people_write_them() -> None:
    assert [percent(v) for v in (9.526, -0.004, -3.0, None)] == [
        "+9.53 %",
        "0.00 %",
        "\N{MINUS SIGN}3.00 %",
        "\N{EN DASH}",
    ]
    assert [relative(v) for v in (10.118, -3.0, 0.001, None)] == [
        "10.12 % fewer",
        "3.00 % more",
        "0.00 %",
        "\N{EN DASH}",
    ]
    assert relative(2.0, "less") == "2.00 % less"
    assert [relative_interval(v) for v in ((1.0, 2.5), (-2.0, -1.0), (-1.0, 2.0))] == [
        "1.00 to 2.50 % fewer",
        "1.00 to 2.00 % more",
        "1.00 % more to 2.00 % fewer",
    ]
    assert [relative_interval(v) for v in ((0.0, 2.0), (-2.0, 0.0), (0.0, 0.0), None)] == [
        "0.00 to 2.00 % fewer",
        "0.00 to 2.00 % more",
        "0.00 to 0.00 %",
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
    assert [size(v) for v in (12, 2048, 9_000_000, None)] == [
        "12 B",
        "2.0 KiB",
        "8.58 MiB",
        "\N{EN DASH}",
    ]
    assert printable("a\nb\x1b\u202e") == "a\\nb\\x1b\\u202e"
    assert [plain_percent(v) for v in (12.34, None)] == ["12.3 %", "\N{EN DASH}"]
    assert [points(v) for v in (1.234, -0.5)] == ["+1.23", "\N{MINUS SIGN}0.50"]
    assert [figure(v, "ns") for v in (950.0, 24_995.0, 3.2e6, 1.5e10)] == [
        "950 ns",
        "25.0 µs",
        "3.20 ms",
        "15.0 s",
    ]
    assert [figure(1.29e9, "bytes/s"), figure(7.0, ""), figure(None, "ns")] == [
        "1.29 GB/s",
        "7.0000",
        "\N{EN DASH}",
    ]


class Cells(HTMLParser):
    """The stacking tables of a page: their column headers, and each cell's text and label."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[tuple[list[str], list[list[tuple[str, str | None]]]]] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "table":
            self.inside = attributes.get("class") == "stack"
            if self.inside:
                self.tables.append(([], []))
        elif self.inside and tag == "tr":
            self.tables[-1][1].append([])
        elif self.inside and tag in ("th", "td"):
            headers, rows = self.tables[-1]
            if attributes.get("scope") == "col":
                headers.append("")
            rows[-1].append((tag, attributes.get("data-label")))

    def handle_data(self, data: str) -> None:
        if self.inside:
            headers, rows = self.tables[-1]
            if len(rows) == 1 and headers:
                headers[-1] += data.strip()


def test_each_cell_of_a_table_that_stacks_has_the_label_of_its_column() -> None:
    tables = Cells(render(golden_report())).tables
    assert len(tables) > 20
    for headers, (_, *rows) in tables:
        assert rows
        for row in rows:
            assert len(row) == len(headers)
            for (tag, label), header in zip(row, headers, strict=True):
                if tag == "td" and label is not None:
                    assert label.replace(" ", "") == header.replace(" ", "")
        assert {label for row in rows for tag, label in row if tag == "td"} - {None}


def test_the_boots_of_the_baseline_are_explained_where_they_are_stated() -> None:
    text = Page(render(golden_report())).text
    explained = "its own 5, 5 of its A/A control and 5 of its relinked build"
    assert f"from 5 boots of opt against 15 of plain ({explained})" in text
    assert f"Boots: image / plain; those of plain are {explained}" in text
    plain = Page(render(REPORTS["equal"])).text
    assert "from 5 boots of opt against 5 of plain." in plain
    assert "its own 5" not in plain


def test_people_read_percent_fewer_and_the_other_convention_only_in_details() -> None:
    made = golden_report()
    text = Page(render(made)).text
    head, details = text.split("The same as baseline / value \N{MINUS SIGN} 1", 1)
    assert "+11.26 %" not in head
    assert "+11.26 %" in details.split("Case by case")[0]
    assert "11.26" not in details.split("Case by case")[1]
    assert "11.26" not in terminal(made)


def test_instructions_are_fewer_and_time_is_less() -> None:
    text = Page(render(golden_report())).text
    assert not re.search(r"(?:▲|▼) ?(?:faster|slower)", text)
    assert "9.77 % less" in text
    timed = report(
        measurement("plain", user=None, device=KVM), measurement(factors=[0.9] * 5, device=KVM)
    )
    only_time = timed.model_copy(
        update={
            "summary": tuple(s for s in timed.summary if s.metric == "guest_time"),
            "cases": tuple(c for c in timed.cases if c.metric == "guest_time"),
        }
    )
    page = Page(render(only_time)).text.replace("\N{NO-BREAK SPACE}", " ")
    assert "does the same work with 9.7 % less guest time than plain" in page
    assert "fewer guest time" not in page
    assert "▼ less" in terminal(only_time)


def test_an_unknown_size_is_a_dash_and_not_zero() -> None:
    plain, opt = (
        image.model_copy(update={"size_bytes": SizeBytes(text=None, image=7)})
        for image in (measurement("plain"), measurement("opt"))
    )
    made = report(plain, opt)
    assert made.images[0].size_bytes.text is None
    assert '<td data-label="Text">\N{EN DASH}</td>' in render(made)
    shown = terminal(made)
    assert "opt: booted, self-check passed, image 7 B" in shown
    assert "text" not in shown.split("opt: booted")[1]
    known = report(plain, measurement("opt"))
    assert "8.58 MiB" in terminal(known)
    assert "larger" not in terminal(known)


def test_no_line_of_a_plot_crosses_a_label() -> None:
    """The row of each label hides the grid and the axis, which are drawn before it."""
    text = render(golden_report())
    labels = re.findall(r'<text(?: class="strong")? x="0" y=', text)
    assert text.count('<rect class="paper"') == len(labels) > 20
    drawings = [d for d in re.findall(r"<svg role=.*?</figure>", text, re.DOTALL) if "paper" in d]
    assert drawings
    for drawing in drawings:
        assert drawing.rfind('class="grid"') < drawing.find('class="paper"')
