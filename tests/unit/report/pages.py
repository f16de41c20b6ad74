"""Reports as people see them, to read in tests."""

from __future__ import annotations

import io
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from mepof.report import Report, summary

from .samples import GOALS, PROVENANCE, golden_report, measurement, report

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
        self.styles = ""
        self.outlines: list[tuple[str, list[str], dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.outlines.append((tag, [*self.open], dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.misnested.append(tag)

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            self.styles += data
        else:
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
        goals=GOALS,
    ),
}
every_report = pytest.mark.parametrize("made", REPORTS.values(), ids=REPORTS.keys())


def terminal(made: Report, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(summary(made, Path("out/demo")))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
