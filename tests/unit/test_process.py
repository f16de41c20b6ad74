"""The gateway to other programs."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mepof.errors import EnvironmentLack, Interrupted, WorkError
from mepof.process import find_tool, run, start

FOREVER = ["sh", "-c", "echo up; exec sleep 1000"]


def test_output_is_merged_logged_and_reported_line_by_line(tmp_path: Path) -> None:
    told: list[str] = []
    log = tmp_path / "logs/log"
    for _ in range(2):
        done = run(["sh", "-c", "echo one; echo two >&2"], log=log, on_line=told.append)
    assert done.output == "one\ntwo"
    assert done.status == 0
    assert told == ["one", "two"] * 2
    assert log.read_text() == "one\ntwo\n" * 2


def test_arguments_are_not_a_shells_and_variables_are_added(tmp_path: Path) -> None:
    assert run(["printf", "%s", "$HOME; `id` 'x'"]).output == "$HOME; `id` 'x'"
    assert run(["sh", "-c", "echo $A"], env={"A": "b"}, cwd=tmp_path).output == "b"
    assert run(["sh", "-c", "echo ${HOME-none}"], env={"HOME": None}).output == "none"


def test_a_program_is_started_and_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = 'cat; echo "$1" >&2; ps -o sid= -p $$; exit 7'
    started = start(["sh", "-c", script, "sh", "$HOME"], given=b"given\n", log=log)
    assert started.process.wait(30) == 7
    assert started.status == 7
    given, argument, session = log.read_text().split()
    assert (given, argument) == ("given", "$HOME")
    assert int(session) == started.process.pid


def test_a_program_that_is_missing_is_not_started(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLack, match="cannot be run"):
        start([tmp_path / "missing"], given=b"", log=tmp_path / "log")


def test_bytes_that_are_not_text_are_replaced() -> None:
    assert run(["printf", r"a\377b"]).output == "a\ufffdb"


def test_a_failure_tells_status_and_last_words(tmp_path: Path) -> None:
    argv = ["sh", "-c", "echo first; echo '  it broke '; echo; exit 7"]
    with pytest.raises(WorkError, match=r"^sh failed with status 7: it broke"):
        run(argv)
    with pytest.raises(WorkError) as caught:
        run(argv, log=tmp_path / "log")
    assert caught.value.remedy == f"see {tmp_path / 'log'}"
    assert run(argv, check=False).status == 7


def test_a_program_that_crashes_is_told_by_its_signal() -> None:
    with pytest.raises(WorkError, match=r"^sh was killed by SIGSEGV: its last words"):
        run(["sh", "-c", "echo its last words; kill -SEGV $$"])
    with pytest.raises(WorkError, match=r"^sh was killed by signal 40: no output"):
        run(["sh", "-c", "kill -40 $$"])


def test_a_program_that_cannot_run_is_a_lack_of_the_environment(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLack, match="nonesuch is not installed"):
        run(["nonesuch"])
    (tmp_path / "text").write_text("no program")
    with pytest.raises(EnvironmentLack, match="cannot be run: Permission denied"):
        run([tmp_path / "text"])
    (tmp_path / "text").chmod(0o755)
    with pytest.raises(EnvironmentLack, match="cannot be run: Exec format error") as caught:
        run([tmp_path / "text"])
    assert "it is for another kind of machine" in str(caught.value.remedy)


def test_a_missing_directory_is_not_blamed_on_the_program(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match=r"none does not exist, so true cannot run there"):
        run(["true"], cwd=tmp_path / "none")


def test_a_limit_ends_the_program() -> None:
    with pytest.raises(WorkError, match=r"sh did not finish within 0\.1 s"):
        run(FOREVER, timeout=0.1)


def test_a_limit_can_be_set_while_python_ends() -> None:
    # Python 3.12 starts no threads then.
    code = """
import atexit
from mepof.process import run
atexit.register(lambda: print(run(["echo", "done"], timeout=60).output))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("done\n", "")


def test_a_limit_holds_after_the_output_was_closed() -> None:
    with pytest.raises(WorkError, match=r"sh did not finish within 0\.2 s"):
        run(["sh", "-c", "exec >&- 2>&-; sleep 1000"], timeout=0.2)


def test_an_interrupt_ends_the_program_with_its_children() -> None:
    cancel = threading.Event()
    # The child holds our pipe: were it not ended too, this would wait for it.
    argv = ["sh", "-c", "echo up; sleep 1000 & wait"]
    with pytest.raises(Interrupted, match="sh was interrupted"):
        run(argv, cancel=cancel, on_line=lambda line: cancel.set())


def test_the_watch_ends_the_program_with_its_reason() -> None:
    with pytest.raises(WorkError, match=r"^enough of it$"):
        run(FOREVER, watch=lambda: "enough of it")


def test_an_error_of_the_watch_ends_the_program_too() -> None:
    def watch() -> None:
        raise WorkError("garbage on the port")

    with pytest.raises(WorkError, match=r"^garbage on the port$"):
        run(FOREVER, watch=watch)


def test_an_error_of_the_listener_ends_the_program() -> None:
    def listen(line: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(FOREVER, on_line=listen)


def test_a_tool_is_found_by_its_path_or_is_a_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_tool("sh").endswith("/sh")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EnvironmentLack) as caught:
        find_tool("sh", "apt-get install dash")
    assert caught.value.remedy == "apt-get install dash"
