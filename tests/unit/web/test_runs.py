from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from plan.toy_bodies import DIAMOND, Toy, plan_of, run, toy
from report.samples import golden_report

from mepof.errors import MepofError
from mepof.plan.body import StepContext
from mepof.plan.journal import read_runs
from mepof.report import write_report
from mepof.web.guard import COOKIE

from .served import serving, words

TOKEN = "correct horse battery staple"


def run_id(root: Path) -> str:
    return read_runs(root / "out")[-1].id


def reported(context: StepContext) -> None:
    write_report(golden_report(), context.output)


@contextmanager
def under_way(root: Path) -> Iterator[threading.Event]:
    """A run of two steps whose first one goes on when the event is set."""
    began, go_on = threading.Event(), threading.Event()

    def work(context: StepContext) -> None:
        (context.output / "file").write_text(context.step.id)
        if context.step.id == "first":
            context.log.write_text("compiling\n")
            context.progress(1, 4, "files")
            began.set()
            assert go_on.wait(30)
            with context.log.open("a") as log:
                log.write("linking \x1b[31m\n")

    plan = plan_of(toy("first"), toy("second", "first"))
    thread = threading.Thread(target=run, args=(root, plan, Toy(work)))
    thread.start()
    try:
        assert began.wait(30)
        yield go_on
    finally:
        go_on.set()
        thread.join()


def test_the_list_shows_every_run_and_finds_them(tmp_path: Path) -> None:
    run(tmp_path, DIAMOND, Toy())
    with serving(tmp_path) as client:
        page = client.get("/")
        assert page.status == 200
        assert f'href="/runs/{run_id(tmp_path)}"' in page.text
        assert f"{len(DIAMOND.steps)} of {len(DIAMOND.steps)}" in words(page.text)
        assert "No run has this name" in words(client.get("/?find=nothing").text)
        assert run_id(tmp_path) in client.get("/?find=done").text
        assert run_id(tmp_path) in client.get("/?page=99999999999999999999").text


def test_an_empty_directory_says_how_to_begin(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        assert "There is no run yet" in words(client.get("/").text)


def test_a_run_shows_its_plan_and_its_steps(tmp_path: Path) -> None:
    run(tmp_path, DIAMOND, Toy())
    with serving(tmp_path) as client:
        page = client.get(f"/runs/{run_id(tmp_path)}").text
        for step in DIAMOND.steps:
            assert f'data-step="{step.id}"' in page
        assert "<svg" in page and DIAMOND.program in page
        assert client.get(f"/runs/{run_id(tmp_path)}/program").text == DIAMOND.program


def test_a_failure_is_shown_with_its_log(tmp_path: Path) -> None:
    def fail(context: StepContext) -> None:
        context.run(["sh", "-c", "echo '<b>broken</b>'; exit 3"])

    with pytest.raises(MepofError):
        run(tmp_path, plan_of(toy("a")), Toy(fail))
    with serving(tmp_path) as client:
        page = client.get(f"/runs/{run_id(tmp_path)}").text
        assert "failed with status 3" in page
        step = client.get(f"/runs/{run_id(tmp_path)}/steps/a").text
        assert "&lt;b&gt;broken&lt;/b&gt;" in step and "<b>broken" not in step
        assert "sh -c" in step


def test_a_live_run_is_followed_to_its_end(tmp_path: Path) -> None:
    with serving(tmp_path) as client, under_way(tmp_path) as go_on:
        identifier = run_id(tmp_path)
        page = client.get(f"/runs/{identifier}").text
        assert f'data-events="/runs/{identifier}/events"' in page
        assert "waits for first" in page
        with client.events(f"/runs/{identifier}/events") as events:
            first = next(events)["changes"]
            assert first["first"]["state"] == "running"
            assert first["second"]["waits"] == "waits for first"
            go_on.set()
            seen: dict[str, str] = {}
            for event in events:
                seen |= {step: news["state"] for step, news in event["changes"].items()}
            assert seen == {"": "done", "first": "done", "second": "done"}
        assert "data-live" not in client.get(f"/runs/{identifier}").text


def test_a_log_is_followed_with_its_controls_visible(tmp_path: Path) -> None:
    with serving(tmp_path) as client, under_way(tmp_path) as go_on:
        identifier = run_id(tmp_path)
        page = client.get(f"/runs/{identifier}/steps/first").text
        assert "compiling" in page
        address = f"/runs/{identifier}/logs/first?from=10"
        assert f'data-events="{address}"' in page
        with client.events(address) as events:
            go_on.set()
            assert "".join(event["text"] for event in events) == "linking \\x1b[31m\n"


def test_the_list_says_when_something_changed(tmp_path: Path) -> None:
    with serving(tmp_path) as client, under_way(tmp_path) as go_on:
        found = re.search(r'data-events="(/events[^"]*)"', client.get("/").text)
        assert found is not None
        go_on.set()
        with client.events(found[1]) as events:
            assert next(events) == {"changed": True}


def test_a_stream_ends_with_the_server(tmp_path: Path) -> None:
    with (
        under_way(tmp_path),
        serving(tmp_path) as client,
        client.events(f"/runs/{run_id(tmp_path)}/events") as events,
    ):
        next(events)
        client.site.stopping.asked = lambda: True
        assert list(events) == []


def test_a_report_is_shown_and_may_do_nothing(tmp_path: Path) -> None:
    plan = plan_of(toy("report", kind="report"))
    run(tmp_path, plan, Toy(reported, kind="report"))
    identifier = run_id(tmp_path)
    with serving(tmp_path) as client:
        assert "fewer" in words(client.get("/").text)
        assert f'href="/runs/{identifier}/reports/report"' in client.get(f"/runs/{identifier}").text
        page = client.get(f"/runs/{identifier}/reports/report")
        assert page.status == 200 and "<h1>" in page.text
        policy = page.headers["content-security-policy"]
        assert "script-src" not in policy and "default-src 'none'" in policy and "sandbox" in policy


def test_a_report_outlives_the_store_it_was_made_in(tmp_path: Path) -> None:
    run(tmp_path, plan_of(toy("report", kind="report")), Toy(reported, kind="report"))
    write_report(golden_report(), tmp_path / "out")
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    with serving(tmp_path) as client:
        assert client.get(f"/runs/{run_id(tmp_path)}/reports/report").status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/runs/000000000000",
        "/runs/..%2f..%2fetc%2fpasswd",
        "/runs/{run}/steps/nothing",
        "/runs/{run}/steps/..%2f..%2f..%2fetc%2fpasswd",
        "/runs/{run}/logs/../../../etc/passwd",
        "/runs/{run}/reports/..%2freport",
        "/static/..%2f__init__.py",
        "/static/%2e%2e/application.py",
        "/nothing",
        "/runs/%00",
        "/runs/%ff",
    ],
)
def test_what_is_not_there_is_not_found(tmp_path: Path, path: str) -> None:
    run(tmp_path, DIAMOND, Toy())
    (tmp_path / "out" / "report.html").write_text("not a report of a step")
    with serving(tmp_path) as client:
        answer = client.get(path.format(run=run_id(tmp_path)))
        assert answer.status == 404
        assert "root:" not in answer.text and "Not found" in answer.text


def test_a_log_outside_of_the_store_is_not_shown(tmp_path: Path) -> None:
    run(tmp_path, DIAMOND, Toy())
    secret = tmp_path / "secret.log"
    secret.write_text("a secret")
    journal = tmp_path / "out" / "journal.jsonl"
    log = str((tmp_path / "store" / "logs" / "a").with_suffix("")).removesuffix("/a")
    journal.write_text(journal.read_text().replace(log, f"{log}/../.."))
    with serving(tmp_path) as client:
        for step in DIAMOND.steps:
            page = client.get(f"/runs/{run_id(tmp_path)}/steps/{step.id}")
            assert page.status == 200 and "a secret" not in page.text


def test_names_of_programs_are_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\u202e"
    plan = plan_of(toy(evil), toy("b", evil))
    run(tmp_path, plan, Toy())
    with serving(tmp_path) as client:
        page = client.get(f"/runs/{run_id(tmp_path)}").text
        assert "<script>alert" not in page and "\u202e" not in page


def test_the_login_gives_a_cookie_that_scripts_and_sites_cannot_have(tmp_path: Path) -> None:
    with serving(tmp_path, TOKEN) as client:
        assert client.get("/").headers["location"] == "/login"
        assert 'name="token"' in client.get("/login").text
        assert client.post("/login", {"token": "wrong"}).status == 403
        answer = client.post("/login", {"token": TOKEN})
        cookie = answer.headers["set-cookie"]
        assert answer.status == 303
        assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower()
        session = cookie.partition(";")[0]
        assert session.startswith(COOKIE)
        assert client.get("/", cookie=session).status == 200
        assert client.get("/", authorization=f"Bearer {TOKEN}").status == 200
        assert client.post("/logout", cookie=session).status == 303
        assert client.get("/", cookie=session).status == 303


@pytest.mark.parametrize(
    ("form", "headers", "status"),
    [
        ({"csrf_token": "wrong"}, {}, 403),
        ({"csrf_token": ""}, {}, 403),
        ({}, {"content_type": "application/json"}, 415),
        ({"token": "x" * (5 << 20)}, {}, 413),
        ({str(n): "" for n in range(50)}, {}, 400),
        ({}, {"origin": "https://evil.example"}, 403),
    ],
)
def test_a_form_that_is_not_ours_is_refused(
    tmp_path: Path, form: dict[str, str], headers: dict[str, str], status: int
) -> None:
    with serving(tmp_path, TOKEN) as client:
        assert client.post("/login", {"token": TOKEN, **form}, **headers).status == status


def test_a_form_that_is_not_text_is_refused(tmp_path: Path) -> None:
    kind = {"content-type": "application/x-www-form-urlencoded"}
    with serving(tmp_path, TOKEN) as client:
        assert client.ask("POST", "/login", b"a=\xff\xfe&b=%ff", kind).status == 400


@pytest.mark.parametrize("name", ["page.css", "page.js", "icon.svg"])
def test_styles_and_scripts_are_ours_and_fetch_nothing(tmp_path: Path, name: str) -> None:
    with serving(tmp_path) as client:
        answer = client.get(f"/static/{name}")
        assert answer.status == 200
        assert "http" not in answer.text.replace("http://www.w3.org/2000/svg", "")
