"""Published comparisons that are repeated: the list of tables, and what becomes of reports."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from mepof.described import read_described
from mepof.errors import InputError
from mepof.executor.programs import compiled
from mepof.g4 import Source
from mepof.suite.cases import load_suite, suite_names

BENCH = Path(__file__).parents[2] / "bench"
PROGRAMS = BENCH / "published"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("published")


def report(costs: dict[str, dict[str, float]], metric: str, **more: Any) -> dict[str, Any]:
    """A report in which each case costs so much on each image, and 100 on the plain one."""
    return {
        "provenance": {"kernel": "Linux 6.12", "program": "", "tools": {"clang": "clang 22"}},
        "core": {"name": "skylake"},
        "images": [{"name": n, "size_bytes": {"text": 10}} for n in ("plain", *costs)],
        "baseline": "plain",
        "cases": [
            {"image": image, "metric": metric, "case": case, "value": value, "baseline": 100}
            for image, by in costs.items()
            for case, value in by.items()
        ],
        **more,
    }


def test_every_table_has_a_program_and_every_program_a_table(published: Any) -> None:
    programs = {path.stem for path in PROGRAMS.glob("*.g4")} - {"by-hand"}
    assert programs == set(published.TABLES)
    assert {table.publication for table in published.TABLES.values()} <= set(published.PUBLICATIONS)


def test_tables_name_images_and_cases_of_their_programs(
    published: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(BENCH.parent)
    for name, table in published.TABLES.items():
        plan = compiled(Source.read(PROGRAMS / f"{name}.g4"))
        (measure,) = (step for step in plan.steps if step.kind == "measure")
        images = {step.id.split("/")[0] for step in plan.steps if step.id.endswith("/build")}
        assert {*table.published, *table.heatmaps} <= images, name
        metrics = measure.params["metrics"]
        assert isinstance(metrics, list)
        cases = {
            case.name: 1.0
            for suite in map(load_suite, suite_names())
            for case in suite.cases
            if case.metric in metrics
        }
        for group in table.groups:
            assert table.cases(group, cases), f"{name}: {group}"


def test_the_figure_is_the_mean_of_the_groups_however_many_cases_each_has(published: Any) -> None:
    table = published.TABLES["mepof-pgo"]
    costs = {"syscall": 50.0, "overhead": 100, "proc": 100, "file512": 100}
    left = {**costs, "pipe128": 80, "pipe512": 80}
    result = published.summary(report({"random": left}, "guest_time"), table)
    (row,) = (line for line in published.page({"mepof-pgo": result}).splitlines() if "9.39" in line)
    # Twice the rate, a quarter more, and three times none: the fifth root of 2.5.
    assert row.startswith("| random | 9.39 | 20.1 | 100.0 | 0.0 | 25.0 | 0.0 | 0.0 |")


def test_a_table_without_a_core_has_no_modelled_columns(published: Any) -> None:
    left = dict.fromkeys(("create-1", "create-4", "rpc-1", "rpc-4"), 90.0)
    made = {**report({"pgo": left}, "guest_time"), "core": None}
    page = published.page({"gcc-arm": published.summary(made, published.TABLES["gcc-arm"])})
    (head,) = (line for line in page.splitlines() if line.startswith("| image |"))
    assert "| IPC-4 | kernel instructions | taken branches | text |" in head
    assert "no core is modelled" in page


def test_images_have_the_publications_names_too(published: Any) -> None:
    made = report({"pgo": {"pipe-1": 90.0}, "thinlto": {"pipe-1": 95.0}}, "guest_time")
    result = published.summary(made, published.TABLES["unixbench-1"])
    page = published.page({"unixbench-1": result})
    assert "| pgo (iFDO) | 3.0 |" in page and "| thinlto |  |" in page


def test_a_group_of_which_nothing_was_measured_is_an_error(published: Any) -> None:
    made = report({"pgo": {"pipe-1": 90.0}}, "latency")
    with pytest.raises(InputError, match=r"no case of all was measured: rr-\*"):
        published.summary(made, published.TABLES["tcp-rr"])


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("tables = 3\n", "tables"),
        ("[tables]\n[publications.a]\ntitle = 1\n", "title"),
        ('[tables]\n[publications.a]\ntitle = "b"\nnaems = {}\n', "naems"),
        ("[tables.a]\npublication = 'x'\n[publications]\n", "title"),
        ("[", "not TOML"),
    ],
)
def test_a_list_of_tables_that_is_wrong_says_where(
    published: Any, tmp_path: Path, text: str, wrong: str
) -> None:
    path = tmp_path / "tables.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=wrong):
        read_described(path, published._Described, "list of tables")


def test_an_unknown_table_is_refused(
    published: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["published.py", "tcp-rrr"])
    with pytest.raises(SystemExit):
        published.main()
    assert "there is no table tcp-rrr" in capsys.readouterr().err


def heat(*images: str) -> dict[str, Any]:
    return {
        "row_bytes": 4096,
        "level_from": [1, 10],
        "images": [{"image": image, "levels": ("0120", "0000")} for image in images],
    }


def test_a_run_draws_the_heatmaps_that_the_publication_shows(
    published: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = published.TABLES["tcp-rr"]
    costs = {image: {"rr-veth-1": 90.0} for image in table.heatmaps if image != "plain"}
    made = report(costs, "latency", heatmaps=heat(*table.heatmaps, "thinlto"))
    monkeypatch.setattr(published, "ran", lambda *_: made)
    monkeypatch.setattr(published, "RESULT", tmp_path / "published")
    monkeypatch.setattr(published, "IMAGES", tmp_path)
    monkeypatch.setattr(sys, "argv", ["published.py", "tcp-rr"])
    published.main()
    drawn = ElementTree.parse(tmp_path / "published-tcp-rr.svg").getroot()
    titles = [text.text for text in drawn.findall(f"{SVG}text")]
    assert titles[:2] == ["plain", "pgo (iFDO)"] and len(titles) == 7
    panel = drawn.find(f"{SVG}svg")
    assert panel is not None and panel.get("viewBox") == "0 0 4 2"
    shades = [path.get("fill") for path in panel.findall(f"{SVG}path")]
    assert shades == ["rgb(155,155,155)", "rgb(255,255,255)"]
    page = (tmp_path / "published.md").read_text()
    assert "](../images/published-tcp-rr.svg)" in page and "4096 bytes" in " ".join(page.split())


def test_an_image_without_a_heatmap_is_an_error(
    published: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = importlib.import_module("measure.heatmaps").drawn
    with pytest.raises(KeyError):
        drawn(heat("plain"), {"pgo": "pgo"})
