"""What services wrote, in errors and in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.app.launch import ServiceFailure, check_setup
from mepof.app.own import OwnApp, load_own
from mepof.app.service_logs import keep, logs_of, remedy_of, with_end
from mepof.device import agent
from mepof.errors import WorkError

LINES = "".join(f"line {number}\n" for number in range(1, 26))


@pytest.fixture
def app(tmp_path: Path) -> OwnApp:
    service = '[[setup]]\nname = "{}"\nargv = ["/{}"]\nseconds = 5\nready = {{}}\n'
    services = "".join(service.format(name, name) for name in ("db", "web"))
    path = tmp_path / "app.toml"
    path.write_text(
        f'title = "Shop"\n{services}[[action]]\nname = "a"\nargv = ["/a"]\nseconds = 5\n'
    )
    return load_own(path)


def ran(text: str = "", status: int = 0) -> agent.ExecResult:
    return agent.ExecResult(status, 1, text.encode(), False)


@pytest.mark.parametrize(
    "how",
    [
        "ended with status 3 before it was ready",
        "was killed by signal 11 before it was stopped",
        "was not ready within 5 s",
    ],
)
def test_an_error_says_how_a_service_ended_and_its_last_20_lines(how: str) -> None:
    failure = ServiceFailure(f"the service `web` {how}: line 25", "web")
    first, *lines = with_end(failure, {"web": LINES, "db": "other"}).splitlines()
    assert first == f"the service `web` {how}"
    assert lines == [f"  | line {number}" for number in range(6, 26)]


@pytest.mark.parametrize("logs", [{}, {"web": ""}, {"web": " \n\n"}, {"db": LINES}])
def test_a_service_without_a_log_has_its_message_alone(logs: dict[str, str]) -> None:
    failure = ServiceFailure("the service `web` was not ready within 5 s: no output", "web")
    assert with_end(failure, logs) == failure.message


def test_what_a_service_wrote_has_the_remedy_unless_how_it_failed_has() -> None:
    logs = {"web": "[::]:80: Address family not supported by protocol\nExiting.\n"}
    failure = ServiceFailure("the service `web` failed: Exiting.", "web")
    assert "`slim` has no IPv6" in (remedy_of(failure, logs) or "")
    assert remedy_of(failure, {"web": "Exiting.\n", "db": logs["web"]}) is None
    assert remedy_of(ServiceFailure("", "web", "stay in the foreground"), logs) == (
        "stay in the foreground"
    )


def test_the_service_that_was_not_ready_is_named(app: OwnApp) -> None:
    with pytest.raises(ServiceFailure, match="was not ready") as raised:
        started = [ran(), ran("the service `web` was not ready within 5 s: x\n", 1)]
        check_setup(app.setup, started, [ran(), ran()])
    assert raised.value.service == "web"


def test_the_service_that_did_not_live_is_named(app: OwnApp) -> None:
    # Services stop in the order that is opposite to their start.
    with pytest.raises(ServiceFailure, match="`db` ended") as raised:
        check_setup(app.setup, [ran(), ran()], [ran(), ran("the service `db` ended", 1)])
    assert raised.value.service == "db"


def test_a_launcher_that_says_nothing_leaves_the_name_of_the_service(app: OwnApp) -> None:
    with pytest.raises(ServiceFailure, match="the service `web` did not answer in time"):
        check_setup(app.setup, [ran(), ran()], [ran("", agent.TIMED_OUT), ran()])
    with pytest.raises(ServiceFailure, match="the service `db` failed, and nothing says why"):
        check_setup(app.setup, [ran("", 1), ran()], [ran(), ran()])


def test_other_setups_have_no_log(app: OwnApp) -> None:
    (db, web) = app.setup
    alone = (db.model_copy(update={"ready": None}), web)
    with pytest.raises(WorkError, match=r"the setup db: .* failed with status 4") as raised:
        check_setup(alone, [ran("no rows", 4), ran()], [ran()])
    assert not isinstance(raised.value, ServiceFailure)


def test_whole_logs_lie_beside_the_log_of_the_step(tmp_path: Path) -> None:
    replies = [agent.GetResult(0, b"\xffup\n"), agent.GetResult(2, b"")]
    logs = logs_of(["web", "db"], replies)
    assert logs == {"web": "\N{REPLACEMENT CHARACTER}up\n"}
    kept = keep(logs, tmp_path / "measure-0a1b.log", ".image1")
    assert kept == {"web": tmp_path / "measure-0a1b.image1.web.log"}
    assert kept["web"].read_text() == logs["web"]
