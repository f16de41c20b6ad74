"""What takes long is done beside the views."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from plan.toy_bodies import Toy, plan_of, run, toy

from mepof.errors import InputError
from mepof.plan.body import StepContext
from mepof.plan.store import Store
from mepof.web import site as site_module
from mepof.web.functions import Functions
from mepof.web.patience import Beside, Unfinished
from mepof.web.provenance import Known, Provenance
from mepof.web.views import store

from .served import serving, words


def test_work_that_is_quick_is_waited_for() -> None:
    assert Beside().result("a", lambda: 3, "a is being read.") == 3


def test_work_that_takes_longer_goes_on_and_is_begun_once() -> None:
    beside, release, begun = Beside(), threading.Event(), []

    def work() -> int:
        begun.append(1)
        release.wait()
        return 3

    for _ in range(2):
        with pytest.raises(Unfinished) as raised:
            beside.result("a", work, "a is being read.")
        assert raised.value.detail == "a is being read."
    under_way = beside.begin("a", work)
    release.set()
    assert under_way.result() == 3 and begun == [1]


def test_an_error_is_that_of_the_work_and_it_is_tried_again() -> None:
    def fail() -> int:
        raise InputError("it is damaged", "make it again")

    beside = Beside()
    for _ in range(2):
        with pytest.raises(InputError, match="it is damaged"):
            beside.result("a", fail, "a is being read.")
    assert beside.result("a", lambda: 3, "a is being read.") == 3


def test_while_the_runs_are_being_read_a_page_says_how_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, plan_of(toy("a")), Toy())
    release = threading.Event()

    class Slow(Provenance):
        def known(self) -> Known:
            release.wait()
            return super().known()

    monkeypatch.setattr(site_module, "Provenance", Slow)
    with serving(tmp_path) as client:
        client.site.begin_reading()
        while "journals are being read" in (answer := client.get("/")).text:
            assert answer.status == 503
        assert answer.status == 503
        assert answer.headers["refresh"] == answer.headers["retry-after"] == "1"
        assert "One moment" in answer.text and "of 1 runs are read" in words(answer.text)
        assert client.get("/static/page.css").status == 200
        release.set()
        while client.get("/").status == 503:
            pass
        assert client.get("/").status == 200


def test_a_profile_that_is_read_for_long_does_not_hold_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(context: StepContext) -> None:
        (context.output / "kernel.profdata").write_bytes(b"counts")

    run(tmp_path, plan_of(toy("a")), Toy(work))
    release = threading.Event()

    def read(profile: Path) -> Functions:
        release.wait()
        return Functions(profile.name, {}, 0, "counts", "Largest block", ())

    monkeypatch.setattr(store, "functions_of", read)
    (action,) = Store(tmp_path / "store").actions()
    path = f"/store/{action.artifact.digest}/functions"
    with serving(tmp_path) as client:
        answer = client.get(path)
        assert answer.status == 503 and "kernel.profdata is being read." in answer.text
        release.set()
        while client.get(path).status == 503:
            pass
        assert "0 of 0 functions" in words(client.get(path).text)
