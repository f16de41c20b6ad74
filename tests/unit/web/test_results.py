"""Comparisons, trends and heatmaps."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from plan.toy_bodies import Toy, plan_of, run, toy
from report.samples import golden_report

from mepof.plan.body import StepContext
from mepof.plan.journal import read_runs
from mepof.report import Report, write_report
from mepof.web.compared import Subject, compared
from mepof.web.trends import template_of

from .served import serving, words


def made(root: Path, name: str, report: Report, program: str = "opt linux-6.12 pgo.") -> str:
    """A run in ``out/NAME`` with that report; gives its id."""

    def work(context: StepContext) -> None:
        write_report(report, context.output)

    body = Toy(work, kind="report")
    step = toy("report", kind="report", name=name, kernel=report.provenance.kernel)
    plan = replace(plan_of(step), program=program)
    run(root, plan, body)
    (root / "out" / name).mkdir()
    (root / "out" / "journal.jsonl").rename(root / "out" / name / "journal.jsonl")
    return read_runs(root / "out" / name)[-1].id


def of_kernel(kernel: str, **changes: float) -> Report:
    """The golden report for another kernel, with another gain."""
    report = golden_report()
    provenance = report.provenance.model_copy(update={"kernel": kernel})
    gain = changes.get("gain")
    summary = tuple(
        row.model_copy(
            update={
                "geomean_improvement_percent": gain,
                "interval_percent": (gain - 1, gain + 1),
            }
        )
        if gain is not None
        else row
        for row in report.summary
    )
    return report.model_copy(update={"provenance": provenance, "summary": summary})


def test_runs_are_compared_by_case_with_intervals(tmp_path: Path) -> None:
    ids = [made(tmp_path, name, golden_report()) for name in ("one", "two")]
    with serving(tmp_path) as client:
        page = client.get(f"/compare?run={ids[0]}&run={ids[1]}").text
        report = golden_report()
        row = next(c for c in report.cases if c.metric == report.summary[0].metric)
        assert f"{row.suite}/{row.case}" in page
        assert "one: " in page and "two: " in page and "<svg" in page
        assert "do not have the same baseline" not in page
        other = report.summary[-1].metric
        assert "selected" in client.get(f"/compare?run={ids[0]}&metric={other}").text


def test_the_change_from_run_to_run_is_that_of_the_ratios() -> None:
    subjects = [
        Subject("one", of_kernel("Linux 6.1", gain=10.0)),
        Subject("two", of_kernel("Linux 6.2", gain=21.0)),
    ]
    found = compared(subjects)
    assert found is not None
    mean = found.lines[0]
    assert mean.label == "geometric mean"
    images = [found.images[i] for pair in found.pairs for i in pair]
    assert images == ["one: opt", "two: opt", "one: size", "two: size"]
    for change in mean.changes:
        assert change is not None and change.interval is not None
        # 1.21 / 1.10 - 1 is 10 % better, which is 1 - 1 / 1.1 less.
        assert change.reduction == pytest.approx(100 * (1 - 1 / 1.1))
        low, high = change.interval
        assert low < change.reduction < high


def test_the_images_of_a_run_alone_are_compared_with_its_first() -> None:
    found = compared([Subject("one", golden_report())])
    assert found is not None
    assert (found.images, found.pairs) == (("one: opt", "one: size"), ((0, 1),))


def test_images_of_other_names_are_compared_with_the_first() -> None:
    report = golden_report()
    renamed = Report.model_validate_json(report.to_json().replace('"opt"', '"new"'))
    only = tuple(image for image in renamed.images if image.name != "size")
    other = renamed.model_copy(update={"images": only})
    found = compared([Subject("one", report), Subject("two", other)])
    assert found is not None
    assert [found.images[i] for i in found.pairs[0]] == ["one: opt", "two: new"]


def test_other_baselines_are_said() -> None:
    report = golden_report()
    other = report.model_copy(
        update={"images": tuple(i.model_copy(update={"digest": "f" * 64}) for i in report.images)}
    )
    found = compared([Subject("one", report), Subject("two", other)])
    assert found is not None and not found.same_baseline


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("?run=", 404),
        ("?run=../../etc", 404),
        ("?run=000000000000", 404),
        ("?" + "&".join(f"run={n:012x}" for n in range(9)), 400),
    ],
)
def test_a_comparison_of_nothing_is_an_error_in_words(
    tmp_path: Path, query: str, status: int
) -> None:
    with serving(tmp_path) as client:
        answer = client.get(f"/compare{query}")
        assert answer.status == status and "<h1>" in answer.text


def test_runs_without_a_comparison_are_named(tmp_path: Path) -> None:
    report = golden_report().model_copy(update={"summary": ()})
    ids = [made(tmp_path, "with", golden_report()), made(tmp_path, "without", report)]
    with serving(tmp_path) as client:
        text = words(client.get(f"/compare?run={ids[0]}&run={ids[1]}").text)
        assert "No report of without compares images" in text
        assert "no metric" in words(client.get(f"/compare?run={ids[1]}").text)


def test_releases_of_one_program_are_one_trend_by_version(tmp_path: Path) -> None:
    for name, kernel in (
        ("a", "Linux 6.12.9"),
        ("b", "Linux 6.12.10"),
        ("c", "Linux 6.12-rc3"),
        ("d", "Linux 6.12"),
    ):
        made(tmp_path, name, of_kernel(kernel), f"opt {kernel.split()[1]} pgo rand kbench.")
    made(tmp_path, "e", of_kernel("Linux 6.12"), "opt linux autofdo rand kbench.")
    with serving(tmp_path) as client:
        page = client.get("/trends").text
        assert page.count('<section aria-labelledby="trend-') == 2
        first = page[page.index('id="trend-1"') : page.index('id="trend-2"')]
        kernels = list(dict.fromkeys(re.findall(r'<th scope="row">(.*?)</th>', first)))
        assert kernels == ["Linux 6.12.10", "Linux 6.12.9", "Linux 6.12", "Linux 6.12-rc3"]
        assert client.get("/trends?metric=<script>").status == 200


def test_trends_without_reports_say_so(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        assert "No run has a report" in words(client.get("/trends").text)


def test_only_releases_are_taken_out_of_programs() -> None:
    assert template_of("opt linux-6.12.9 pgo O2.") == template_of("opt linux-6.13-rc1 pgo O2.")
    assert template_of("set seed 1.") != template_of("set seed 2.")


def test_a_heatmap_is_shown_whole_and_in_part(tmp_path: Path) -> None:
    identifier = made(tmp_path, "one", golden_report())
    heat = golden_report().heatmaps
    assert heat is not None
    rows, columns = len(heat.images[0].levels), sum(case.columns for case in heat.cases)
    base = f"/runs/{identifier}/heatmaps/report"
    with serving(tmp_path) as client:
        assert base in client.get(f"/runs/{identifier}").text
        whole = client.get(base).text
        assert f'viewBox="0 0 {columns} {rows}"' in whole and "Closer" in whole
        image = heat.images[-1].image
        part = client.get(f"{base}?image={image}&x=1&y=1&w=4&h=4").text
        assert 'viewBox="0 0 4 4"' in part and "This is a part" in part
        assert f"{heat.address + heat.row_bytes:#x}" in part
        for query in ("?x=99999999999999999999&w=-1&h=x", "?x=1000000&y=1000000&w=1&h=1"):
            assert client.get(base + query).status == 200
        assert client.get(f"/runs/{identifier}/heatmaps/other").status == 404


def test_functions_of_the_shown_addresses_are_named(tmp_path: Path) -> None:
    heat = golden_report().heatmaps
    assert heat is not None
    image = heat.images[-1].image
    within = heat.address + 2 * heat.row_bytes

    def work(context: StepContext) -> None:
        write_report(golden_report(), context.output)
        lines = [f"{within:016x} T vfs_read", f"{within:016x} D data", "nonsense"]
        (context.output / "System.map").write_text("\n".join(lines) + "\n")

    plan = plan_of(toy(f"{image}/build"), toy("report", kind="report"))
    run(tmp_path, plan, Toy(work), Toy(work, kind="report"))
    identifier = read_runs(tmp_path / "out")[-1].id
    with serving(tmp_path) as client:
        base = f"/runs/{identifier}/heatmaps/report?image={image}"
        assert "vfs_read" in client.get(f"{base}&y=1&h=4").text
        assert "data" not in words(client.get(base).text).partition("Functions that")[2]
        assert "vfs_read" not in client.get(f"{base}&y=8&h=4").text
