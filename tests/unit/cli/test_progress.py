from __future__ import annotations

import io
import os
import sys
import threading

import pytest
from rich.console import Console

from mepof.cli.progress import LiveDisplay, LogDisplay, progress
from mepof.events import Event, StepFailed, StepFinished, StepNote, StepProgress, StepStarted


class Terminal(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Clock:
    """Seconds that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def log_lines(*events: Event) -> list[str]:
    """What a log gets that is not a terminal."""
    console = Console(file=io.StringIO(), width=40)
    display = LogDisplay(console, Clock())
    for event in events:
        display(event)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def live_text(*events: Event, width: int = 100) -> str:
    """What is on the screen after the events, without escape sequences."""
    console = Console(file=Terminal(), width=width, force_terminal=True, color_system=None)
    display = LiveDisplay(console, Clock())
    for event in events:
        display(event)
    console.print(display.bars)
    assert isinstance(console.file, Terminal)
    return console.file.getvalue()


def test_a_log_has_start_and_end_with_the_reason_and_the_time() -> None:
    assert log_lines(
        StepStarted("opt/build", "kernel-build", "the configuration changed"),
        StepFinished("opt/build", "kernel-build", "ab", 252.0, False),
        StepFinished("source", "source", "cd", 0.0, True),
    ) == [
        "  0:00 start  opt/build: the configuration changed",
        "  0:00 made   opt/build  4 min 12 s",
        "  0:00 cached source",
    ]


def test_a_log_names_the_failure_and_its_log_in_one_line() -> None:
    (line,) = log_lines(StepFailed("boot", "boot", "panic:\nno root", 3.0, "/s/boot.log"))
    assert line == "  0:00 FAILED boot  3.0 s: panic:\\nno root (log: /s/boot.log)"


def test_a_failed_step_is_named_once() -> None:
    event = StepFailed("boot", "boot", "boot: panic", 3.0, None)
    assert log_lines(event) == ["  0:00 FAILED boot  3.0 s: panic"]


def test_an_interrupted_step_has_not_failed() -> None:
    event = StepFailed("boot", "boot", "interrupted", 3.0, "/s/boot.log", interrupted=True)
    assert log_lines(event) == ["  0:00 stopped boot  3.0 s"]
    assert "FAILED" not in live_text(event)
    assert "stopped boot" in live_text(event)


def test_a_failed_step_that_is_repeated_says_so_in_one_line() -> None:
    event = StepFailed("boot", "boot", "boot: it hung\n  | last words", 3.0, "log", retried=True)
    assert log_lines(event) == ["  0:00 failed boot  3.0 s: it hung; a remedy is tried"]
    assert "FAILED" not in live_text(event)


def test_a_step_that_ends_early_ends_at_100_percent() -> None:
    lines = log_lines(
        StepProgress("measure", 10, 48, "boots", "seed 5"),
        StepFinished("measure", "measure", "ab", 60.0, False),
        StepFinished("other", "measure", "ab", 60.0, True),
    )
    assert [line[7:].strip() for line in lines] == [
        "measure: 10 of 48 boots (20 %) seed 5",
        "measure: 10 of 10 boots (100 %)",
        "made   measure  1 min 00 s",
        "cached other",
    ]


def test_a_failed_step_does_not_end_at_100_percent() -> None:
    lines = log_lines(
        StepProgress("measure", 10, 48, "boots"),
        StepFailed("measure", "measure", "panic", 60.0, None),
    )
    assert not any("100 %" in line for line in lines)


def test_a_log_has_a_line_for_each_tenth_however_many_files() -> None:
    lines = log_lines(*(StepProgress("b", n, 3000, "files") for n in range(3001)))
    assert len(lines) == 10
    assert lines[0].endswith("b: 300 of 3,000 files (10 %)")
    assert lines[-1].endswith("b: 3,000 of 3,000 files (100 %)")


def test_a_log_of_unknown_length_has_a_line_every_fifteen_seconds() -> None:
    clock = Clock()
    console = Console(file=io.StringIO())
    display = LogDisplay(console, clock)
    for second in range(61):
        clock.now = float(second)
        display(StepProgress("b", second, None, "files"))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert [line[:6].strip() for line in lines] == ["0:15", "0:30", "0:45", "1:00"]


def test_going_back_does_not_repeat_lines() -> None:
    there_and_back = [*range(0, 101, 10), *range(100, -1, -10)] * 5
    lines = log_lines(*(StepProgress("b", n, 100, "files") for n in there_and_back))
    assert len(lines) == 10


def test_a_total_of_zero_is_not_an_error() -> None:
    assert log_lines(StepProgress("b", 0, 0, "files")) == []
    assert "0 files" in live_text(StepProgress("b", 0, 0, "files"))


def test_names_and_notes_do_not_drive_the_terminal() -> None:
    hostile = "[red]x\x1b[2J\nfoo"
    events = (
        StepStarted(hostile, "k", hostile),
        StepProgress(hostile, 1, 2, hostile, hostile),
        StepNote(hostile, hostile),
        StepFailed(hostile, "k", hostile, 1.0, hostile),
    )
    lines = log_lines(*events)
    assert len(lines) == 4
    for text in ("\n".join(lines), live_text(*events, width=300)):
        assert "\x1b[2J" not in text
        assert "[red]x\\x1b[2J\\nfoo" in text


def test_the_display_shows_running_steps_with_their_completion() -> None:
    text = live_text(
        StepStarted("opt/build", "k", "new"),
        StepProgress("opt/build", 812, 2301, "files", "CC mm/slub.o"),
        StepStarted("plain/boot", "k", "new"),
    )
    assert "opt/build" in text
    assert "812 of 2,301 files (35 %) CC mm/slub.o" in text
    assert "plain/boot" in text


def test_a_finished_step_leaves_the_display_as_one_line() -> None:
    text = live_text(
        StepStarted("opt/build", "k", "new"),
        StepProgress("opt/build", 1, 2, "files"),
        StepFinished("opt/build", "k", "ab", 252.0, False),
    )
    assert text.count("opt/build") == 1
    assert "made   opt/build  4 min 12 s" in text
    assert "files" not in text


@pytest.mark.parametrize("file", [io.StringIO, Terminal])
def test_nothing_goes_to_standard_output(
    file: type[io.StringIO], capsys: pytest.CaptureFixture[str]
) -> None:
    console = Console(file=file(), force_terminal=file is Terminal)
    with progress(console) as sink:
        sink(StepStarted("b", "k", "new"))
        print("{}")
        sink(StepFinished("b", "k", "ab", 1.0, False))
    assert capsys.readouterr().out == "{}\n"


def test_a_pipe_gets_a_log_even_when_colour_is_forced() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)
    with progress(console) as sink:
        assert isinstance(sink, LogDisplay)
    with progress(Console(file=Terminal(), force_terminal=True)) as sink:
        assert isinstance(sink, LiveDisplay)


@pytest.mark.parametrize("file", [io.StringIO, Terminal])
def test_many_threads_lose_no_line(file: type[io.StringIO]) -> None:
    console = Console(file=file(), force_terminal=file is Terminal, width=100, color_system=None)
    with progress(console) as sink:

        def work(name: str) -> None:
            sink(StepStarted(name, "k", "new"))
            for n in range(100):
                sink(StepProgress(name, n, 100, "files"))
            sink(StepFinished(name, "k", "ab", 1.0, False))

        threads = [threading.Thread(target=work, args=(f"step{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert all(text.count(f"made   step{n}  1.0 s") == 1 for n in range(8))


def test_a_run_goes_on_when_nobody_reads_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.setattr("sys.stderr", os.fdopen(writer, "w"))
    with progress() as sink:
        for text in ("one", "two"):
            sink(StepNote("plain/build", text))
    with pytest.raises(BrokenPipeError):
        sys.stderr.close()
