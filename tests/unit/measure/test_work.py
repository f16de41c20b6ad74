"""What a boot measures, and what its replies mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mepof.app.own import OwnApp, load_own
from mepof.device import agent
from mepof.device.protocol import Interval, Outcome
from mepof.measure.runner import OneBoot, measure_boot, requests_of
from mepof.measure.work import memory_of, work_of
from mepof.suite.cases import cases_of

MEMINFO = agent.GetResult(
    0,
    b"MemTotal: 9 kB\nMemFree: 5 kB\nBuffers: 0 kB\nCached: 1 kB\nSlab: 1 kB\n"
    b"SReclaimable: 1 kB\nKernelStack: 1 kB\nPageTables: 1 kB\n",
)
DESCRIPTION = """
title = "Shop"
memory = 768
[[setup]]
name = "db"
argv = ["/db"]
seconds = 7
ready = {}
[[action]]
name = "buy"
argv = ["/shop", "buy"]
seconds = 90
check = { output = "sold" }
[[action]]
name = "fail"
argv = ["/shop", "fail"]
seconds = 5
check = { status = 77 }
"""
LINE = "case={} operations=1 elapsed_ns=5 check=ok\n"


@pytest.fixture
def shop(tmp_path: Path) -> OwnApp:
    path = tmp_path / "app.toml"
    path.write_text(DESCRIPTION)
    return load_own(path)


def ran(text: str, status: int = 0) -> agent.ExecResult:
    return agent.ExecResult(status, 1, text.encode(), False)


SOUND = (
    *(ran("checked"), ran("")),
    ran(LINE.format("buy") + "case=other operations=9 elapsed_ns=9 check=bad\nsold p50_ns=3\n"),
    ran(LINE.format("fail") + "no\n", 77),
    *(ran(""), MEMINFO, agent.GetResult(0, b"".join(b"line %d\n" % n for n in range(30)))),
)


def booted(shop: OwnApp, replies: Sequence[agent.Reply]) -> OneBoot:
    intervals = tuple(Interval(n, 2, 3, 4) for n in range(2))
    outcome = Outcome("6.12", tuple(replies), intervals, "")
    return measure_boot(work_of((), [shop]), 1, lambda seed, requests: outcome)


def test_an_app_in_an_image_asks_for_all_ports_before_its_setups(shop: OwnApp) -> None:
    image = shop.model_copy(update={"image": "oci"})
    (work,) = work_of((), [image])
    first, *others = work.requests
    assert isinstance(first, agent.Put) and tuple(others) == work.commands
    assert len(work.names) == len(work.requests)
    replies = (SOUND[0], agent.PutResult(0), *SOUND[1:])
    assert booted(image, replies).boot is not None


def test_suites_run_before_services_start(shop: OwnApp) -> None:
    work = work_of(["proc"], [shop])
    (case,) = cases_of(["proc"])
    commands = [r.argv for r in requests_of(work) if isinstance(r, agent.Exec)]
    assert commands[1:] == [
        case.argv,
        ("/mepof/launch", "setup", "db"),
        ("/mepof/launch", "measure", "buy"),
        ("/mepof/launch", "measure", "fail"),
        ("/mepof/launch", "stop", "db"),
    ]
    # An action's limit is kept by the program that measures it, which then tells what it wrote.
    assert [r.timeout for r in work[1].commands] == [17, 95, 10, 17]
    assert [name for each in work for name in each.names] == [
        *(case.name, "setting up db", "buy", "fail", "stopping"),
    ]
    assert memory_of(work) == 768


def test_an_app_alone_does_not_bring_the_default_suite(shop: OwnApp) -> None:
    assert [case.suite for each in work_of((), [shop]) for case in each.cases] == ["shop", "shop"]
    assert next(case.suite for each in work_of((), ()) for case in each.cases) == "mepof"


def test_what_an_action_writes_is_not_its_result_line(shop: OwnApp) -> None:
    boot = booted(shop, SOUND).boot
    assert boot is not None
    assert [(c.suite, c.case, c.operations, c.guest_nanoseconds) for c in boot.cases] == [
        *(("shop", "buy", 1, 5), ("shop", "fail", 1, 5)),
    ]
    assert boot.cases[0].figures == {} and boot.unsupported == ()


@pytest.mark.parametrize(
    ("at", "reply", "why"),
    [
        # The result line says ok, which is not what the check looks for.
        (2, ran(LINE.format("buy") + "none left\n"), "the action buy did not write 'sold'"),
        (2, ran("cannot run /shop\n", 127), "the action buy: `/shop buy` failed with status 127"),
        (3, ran(LINE.format("fail")), "ended with status 0 in the guest, but its check expects 77"),
        (1, ran("no disk\n", 1), "no disk"),
        (4, ran("the service `db` ended with status 1 before it was stopped", 1), "before it was"),
        (0, ran("wrong", 1), "failed with status 1 in the guest: wrong"),
    ],
)
def test_an_image_on_which_the_users_program_fails_is_not_sound(
    shop: OwnApp, at: int, reply: agent.ExecResult, why: str
) -> None:
    found = booted(shop, [*SOUND[:at], reply, *SOUND[at + 1 :]])
    assert found.booted and found.boot is None
    assert why in found.self_check
    # What runs before the app is the kernel's own check.
    failed = "passed its self-check, but an app failed on it" if at else "failed its self-check"
    assert found.how_it_failed == failed
    assert found.self_check.startswith("the app `Shop` failed: ") is (at > 0)
    # An action may fail because of what a service did.
    assert found.service_logs["db"].endswith("line 29\n")


ENDED = "the service `db` ended with status 3 before it was ready: line 29"


def test_a_service_that_fails_is_shown_with_the_end_of_its_log_and_kept_whole(
    shop: OwnApp,
) -> None:
    found = booted(shop, [SOUND[0], ran(ENDED, 1), *SOUND[2:]])
    how, *lines = found.self_check.splitlines()
    assert how == "the app `Shop` failed: the service `db` ended with status 3 before it was ready"
    assert lines == [f"  | line {number}" for number in range(10, 30)]
    assert found.service_logs["db"].splitlines()[0] == "line 0"
    assert booted(shop, SOUND).service_logs == {}


def test_a_service_that_wrote_nothing_is_shown_with_how_it_ended(shop: OwnApp) -> None:
    silent = "the service `db` was not ready within 7 s: no output"
    for log in (agent.GetResult(0, b""), agent.GetResult(2, b"")):
        found = booted(shop, [SOUND[0], ran(silent, 1), *SOUND[2:-1], log])
        assert found.self_check == f"the app `Shop` failed: {silent}"


def test_what_helps_a_program_that_failed_is_said(shop: OwnApp) -> None:
    found = booted(shop, [*SOUND[:2], ran("No space left on device", 1), *SOUND[3:]])
    assert found.self_check.endswith(
        "left on device (the guest's files are in its memory: give it more: `memory`)"
    )
    daemon = "the service `db` ended with status 0 before it was ready: line 29"
    found = booted(shop, [SOUND[0], ran(daemon, 1), *SOUND[2:]])
    how, *lines = found.self_check.splitlines()
    assert how.endswith(
        "was ready (start it in the foreground, without the option by which it becomes a daemon)"
    )
    assert lines[-1] == "  | line 29"


def test_what_services_wrote_is_read_last(shop: OwnApp) -> None:
    *_, memory, log = requests_of(work_of(["proc"], [shop]))
    assert (memory, log) == (agent.Get("/proc/meminfo"), agent.Get("/mepof/run/db.log"))
    assert requests_of(work_of(["proc"], []))[-1] == agent.Get("/proc/meminfo")
