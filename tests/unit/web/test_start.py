from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from plan.test_journal import begin
from plan.toy_bodies import DIAMOND, Toy, run

from mepof.plan.journal import FILE_NAME, JournalledRun, read_runs
from mepof.process import start
from mepof.web import launch
from mepof.web.launch import Launcher, holds

from .served import Client, serving, words

PROGRAM = "opt debian:linux-source-6.12 pgo rand kbench O2.\n"
TOY_RUN = Path(__file__).with_name("toy_run.py")


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "RUN", (sys.executable, str(TOY_RUN)))


@contextmanager
def started(root: Path, **site: Any) -> Iterator[Client]:
    """A server; what was started there ends with the test."""
    with serving(root, **site) as client:
        try:
            yield client
        finally:
            (root / "out").mkdir(exist_ok=True)
            (root / "out" / "go").touch()
            for each in client.site.launcher._started.values():
                each.process.wait(30)


def begun(client: Client, name: str, after: str = "") -> JournalledRun:
    """The run that was started, once its journal has its first step."""
    process = client.site.launcher.started(name)
    assert process is not None
    while True:
        entries = client.site.catalogue.entries().values()
        for entry in entries:
            if entry.run.pid == process.process.pid and entry.run.steps:
                return entry.run
        assert process.status is None, client.site.launcher.said(name).read_text()


def ended(client: Client, name: str) -> None:
    process = client.site.launcher.started(name)
    assert process is not None
    process.process.wait(30)
    client.site.catalogue.entries(fresh=True)


def test_a_program_is_checked_started_cancelled_and_resumed(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        page = client.post("/start", {"name": "one", "program": PROGRAM, "do": "check"})
        assert page.status == 200 and "The program is right" in words(page.text)
        assert not (tmp_path / "out" / "one").exists()

        answer = client.post("/start", {"name": "one", "program": PROGRAM, "do": "start"})
        assert (answer.status, answer.headers["location"]) == (303, "/started/one")
        first = begun(client, "one")
        assert client.get("/started/one").headers["location"] == f"/runs/{first.id}"
        page = client.get(f"/runs/{first.id}")
        assert f'action="/runs/{first.id}/cancel"' in page.text
        assert f"the program has {len(PROGRAM)} characters" in page.text
        assert first.program == PROGRAM

        assert client.post(f"/runs/{first.id}/cancel").status == 303
        ended(client, "one")
        assert read_runs(tmp_path / "out" / "one")[0].state == "interrupted"
        page = client.get(f"/runs/{first.id}")
        assert f'action="/runs/{first.id}/resume"' in page.text

        # The toy has other steps than the program, as a run with --perf-data has.
        assert client.post(f"/runs/{first.id}/resume").status == 400


def test_a_run_is_resumed_in_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "checked", lambda text: DIAMOND.__class__(text, 1, (), ()))
    with started(tmp_path) as client:
        client.post("/start", {"name": "one", "program": PROGRAM, "do": "start"})
        first = begun(client, "one")
        assert client.post(f"/runs/{first.id}/resume").status == 400  # it is under way
        client.post(f"/runs/{first.id}/cancel")
        ended(client, "one")
        answer = client.post(f"/runs/{first.id}/resume")
        assert (answer.status, answer.headers["location"]) == (303, "/started/one")
        assert client.post(f"/runs/{first.id}/resume").status == 400  # before its journal begins
        second = begun(client, "one")
        assert second.id != first.id
        (tmp_path / "out" / "go").touch()
        ended(client, "one")
        assert [r.state for r in read_runs(tmp_path / "out" / "one")] == ["interrupted", "done"]
        assert client.post(f"/runs/{first.id}/resume").status == 400  # another one followed
        assert client.post(f"/runs/{second.id}/cancel").status == 400


def test_a_run_that_another_process_started_is_cancelled(tmp_path: Path) -> None:
    out = tmp_path / "out" / "elsewhere"
    out.mkdir(parents=True)
    command = (sys.executable, TOY_RUN, "--out", out, "--store", tmp_path / "store")
    process = start(command, given=b"a program.", log=tmp_path / "log")
    with started(tmp_path) as client:
        while not (runs := read_runs(out) if (out / FILE_NAME).exists() else ()):
            assert process.status is None, (tmp_path / "log").read_text()
        while not read_runs(out)[0].steps:
            assert process.status is None
        assert client.post(f"/runs/{runs[0].id}/cancel").status == 303
        process.process.wait(30)
        assert read_runs(out)[0].state == "interrupted"


def test_a_program_with_errors_is_not_started(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        text = "opt nothing pgo rand kbench.\nset seed <b>.\n"
        for do in ("check", "start"):
            answer = client.post("/start", {"name": "one", "program": text, "do": do})
            assert answer.status == 422
            assert "the program:2:" in answer.text and "&lt;b&gt;" in answer.text
        assert not (tmp_path / "out" / "one").exists()


def test_a_run_that_cannot_be_planned_says_why(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        text = PROGRAM + "# memory\n"
        client.post("/start", {"name": "one", "program": text, "do": "start"})
        ended(client, "one")
        page = words(client.get("/started/one").text)
        assert "ended before its first step" in page and "it cannot be planned" in page


@pytest.mark.parametrize(
    "name",
    ["", "..", ".", "../x", "a/b", "/etc", "-x", ".x", "a b", "a\nb", "a\0", "é", "x" * 65, "$(a)"],
)
def test_a_name_that_could_lead_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with started(tmp_path) as client:
        answer = client.post("/start", {"name": name, "program": PROGRAM, "do": "start"})
        assert answer.status == 422
        assert not list(tmp_path.glob("out/*"))


def test_a_directory_that_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out" / "one").mkdir(parents=True)
    with started(tmp_path) as client:
        answer = client.post("/start", {"name": "one", "program": PROGRAM, "do": "start"})
        assert answer.status == 422 and "exists already" in answer.text
        assert not list((tmp_path / "out" / "one").iterdir())


def test_a_program_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        form = {"name": "one", "program": "#" * ((1 << 20) + 1), "do": "check"}
        answer = client.post("/start", form)
        assert answer.status == 422 and "larger than 1 MiB" in answer.text


def test_only_so_many_runs_are_started_at_once(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        statuses = [
            client.post("/start", {"name": f"r{n}", "program": PROGRAM, "do": "start"}).status
            for n in range(5)
        ]
        assert statuses == [303, 303, 303, 303, 422]
        assert not (tmp_path / "out" / "r4").exists()


def test_nothing_is_started_without_the_csrf_token(tmp_path: Path) -> None:
    run(tmp_path, DIAMOND, Toy())
    identifier = read_runs(tmp_path / "out")[0].id
    with started(tmp_path) as client:
        form = {"name": "one", "program": PROGRAM, "do": "start", "csrf_token": "guessed"}
        assert client.post("/start", form).status == 403
        for act in ("cancel", "resume"):
            address = f"/runs/{identifier}/{act}"
            assert client.post(address, {"csrf_token": "guessed"}).status == 403
            assert client.get(address).status == 405
        assert not (tmp_path / "out" / "one").exists()


def test_a_server_that_only_reads_starts_nothing(tmp_path: Path) -> None:
    run(tmp_path, DIAMOND, Toy())
    identifier = read_runs(tmp_path / "out")[0].id
    with started(tmp_path, may_start=False) as client:
        assert client.get("/start").status == 404
        form = {"name": "one", "program": PROGRAM, "do": "start"}
        assert client.post("/start", form).status == 404
        assert client.post(f"/runs/{identifier}/resume").status == 404
        assert "/start" not in client.get("/").text.replace("/started", "")


def test_programs_of_one_directory_are_offered(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    (programs / "deep").mkdir(parents=True)
    (programs / "deep" / "a.g4").write_text(PROGRAM)
    (programs / "notes.txt").write_text("not a program")
    (tmp_path / "outside.g4").write_text("# a secret\n")
    (programs / "link.g4").symlink_to(tmp_path / "outside.g4")
    with started(tmp_path, programs=programs) as client:
        page = client.get("/start").text
        assert "deep/a.g4" in page and "link.g4" not in page and "notes.txt" not in page
        chosen = client.get("/start?file=deep/a.g4").text
        assert PROGRAM.strip() in chosen and 'value="a"' in chosen
        for path in ("link.g4", "../outside.g4", "notes.txt", "%2e%2e/outside.g4", "/etc/passwd"):
            answer = client.get(f"/start?file={path}")
            assert answer.status == 404 and "secret" not in answer.text
    with started(tmp_path) as client:
        assert client.get("/start?file=deep/a.g4").status == 404


@pytest.mark.parametrize("name", ["one", "..", "%2e%2e/etc", "a/b"])
def test_what_was_not_started_here_is_not_found(tmp_path: Path, name: str) -> None:
    with started(tmp_path) as client:
        assert client.get(f"/started/{name}").status == 404


def test_a_run_in_another_store_is_not_resumed(tmp_path: Path) -> None:
    (tmp_path / "out" / "a").mkdir(parents=True)
    begin(tmp_path / "out" / "a", PROGRAM).close()
    with started(tmp_path) as client:
        identifier = read_runs(tmp_path / "out" / "a")[0].id
        answer = client.post(f"/runs/{identifier}/resume")
        assert answer.status == 400 and "used the store /s" in answer.text


def test_only_the_process_that_holds_the_journal_is_interrupted(tmp_path: Path) -> None:
    """A number in a journal may be another process by now."""
    (tmp_path / "out" / "a").mkdir(parents=True)
    journal = begin(tmp_path / "out" / "a")
    assert holds(os.getpid(), journal.path)
    assert not holds(1, journal.path)
    journal.close()
    assert not holds(os.getpid(), journal.path)
    with started(tmp_path) as client:
        (entry,) = client.site.catalogue.entries().values()
        answer = client.post(f"/runs/{entry.run.id}/cancel")
        assert answer.status == 400 and "no process of this machine" in answer.text


def test_waiting_locks_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.touch()
    inode, table = path.stat().st_ino, tmp_path / "locks"
    table.write_text(
        f"1: -> FLOCK  ADVISORY  READ 7 fe:00:{inode} 0 EOF\n"
        f"2: POSIX  ADVISORY  WRITE 8 fe:00:{inode} 0 EOF\n"
        f"3: FLOCK  ADVISORY  READ 9 fe:00:{inode} 0 EOF\n"
    )
    assert [pid for pid in (7, 8, 9) if holds(pid, path, table)] == [9]


def test_a_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Exception, match="cannot be written"):
        Launcher(tmp_path / "file", tmp_path / "store").start("one", PROGRAM)


def test_a_run_from_another_directory_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, DIAMOND, Toy())
    began, identifier = Path.cwd(), read_runs(tmp_path / "out")[0].id
    with started(tmp_path) as client:
        monkeypatch.chdir(tmp_path)
        answer = client.post(f"/runs/{identifier}/resume")
        assert answer.status == 400 and f"was started in {began}" in words(answer.text)
