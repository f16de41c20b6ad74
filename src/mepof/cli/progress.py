"""Live progress from the events of a run: a moving display on a terminal, plain lines in a log.

Both go to standard error, and both may be called from several threads at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TimeElapsedColumn,
)
from rich.text import Text

from mepof.cli.console import ErrorConsole
from mepof.events import (
    ConsoleReturned,
    ConsoleTaken,
    Event,
    Sink,
    StepFailed,
    StepFinished,
    StepNote,
    StepProgress,
    StepStarted,
)
from mepof.plan.progress import completion
from mepof.report.text import duration, printable

_LOG_PERCENT = 10
_LOG_SECONDS = 15.0

Clock = Callable[[], float]


@contextmanager
def progress(console: Console | None = None, clock: Clock = time.monotonic) -> Iterator[Sink]:
    """Show events while the block runs; yields the sink for them.

    Args:
        console: where to show it, standard error if not given. It is a live display on a
            terminal that can move its cursor, and a log elsewhere.
        clock: seconds from any start.
    """
    console = console or ErrorConsole()
    # Colour can be forced on a pipe, where a moving display would still be noise.
    if not (console.file.isatty() and console.is_interactive):
        yield LogDisplay(console, clock)
        return
    display = LiveDisplay(console, clock)
    with display.bars:
        yield display


class LogDisplay:
    """Plain lines: a start, progress each 10 % or after 15 s, notes, an end."""

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._began = clock()
        self._lock = threading.Lock()
        self._said: dict[tuple[str, str], _Said] = {}
        self._latest: dict[str, StepProgress] = {}

    def __call__(self, event: Event) -> None:
        """Take an event."""
        with self._lock:
            match event:
                case StepStarted():
                    self._line(Text(f"start  {event.step}: {event.reason}"))
                case StepProgress():
                    self._progress(event)
                case StepFinished():
                    self._complete(event)
                    self._line(_last_line(event))
                case StepNote() | StepFailed():
                    self._line(_last_line(event))

    def _complete(self, event: StepFinished) -> None:
        """End the progress of a step that had to do less than it could have had to."""
        latest = self._latest.pop(event.step, None)
        if latest is not None and latest.total and 0 < latest.done < latest.total:
            done = StepProgress(event.step, latest.done, latest.done, latest.unit)
            self._line(Text(f"       {event.step}: {completion(done)}"))

    def _progress(self, event: StepProgress) -> None:
        """Print progress that is news: a bounded number of lines however many events."""
        self._latest[event.step] = event
        now = self._clock()
        part = _LOG_PERCENT * event.done // event.total if event.total else 0
        key = (event.step, event.unit)
        said = self._said.setdefault(key, _Said(now, 0))
        if part > said.part or now - said.at >= _LOG_SECONDS:
            self._said[key] = _Said(now, max(part, said.part))
            self._line(Text(f"       {event.step}: {completion(event)}"))

    def _line(self, text: Text) -> None:
        minutes, seconds = divmod(int(self._clock() - self._began), 60)
        plain = f"{minutes:3d}:{seconds:02d} {printable(text.plain)}"
        self._console.print(Text(plain), soft_wrap=True)


@dataclass(frozen=True)
class _Said:
    """When progress was last printed, and the part (of ten) reached then."""

    at: float
    part: int


class LiveDisplay:
    """A bar for each running step; finished steps scroll away as one line each.

    Attributes:
        bars: the display; it moves while it is entered as a context.
    """

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        self.bars = Progress(
            SpinnerColumn(),
            _FieldColumn("step"),
            BarColumn(bar_width=16),
            _FieldColumn("completion"),
            TimeElapsedColumn(),
            console=console,
            get_time=clock,
            transient=True,
            # Standard output belongs to the result: `--json` prints one document there.
            redirect_stdout=False,
        )
        self._lock = threading.Lock()
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, event: Event) -> None:
        """Take an event."""
        with self._lock:
            match event:
                case StepStarted():
                    self._task(event.step)
                case StepProgress():
                    self.bars.update(
                        self._task(event.step),
                        completed=event.done,
                        total=event.total,
                        completion=printable(completion(event)),
                    )
                case StepNote():
                    self.bars.console.print(_last_line(event))
                case StepFinished() | StepFailed():
                    if event.step in self._tasks:
                        self.bars.remove_task(self._tasks.pop(event.step))
                    self.bars.console.print(_last_line(event))
                case ConsoleTaken():
                    self.bars.stop()
                case ConsoleReturned():
                    self.bars.start()

    def _task(self, step: str) -> TaskID:
        if step not in self._tasks:
            self._tasks[step] = self.bars.add_task(
                "", total=None, step=printable(step), completion=""
            )
        return self._tasks[step]


class _FieldColumn(ProgressColumn):
    """A field of the task, shown literally: names are not markup."""

    def __init__(self, field: str) -> None:
        super().__init__()
        self._field = field

    def render(self, task: Task) -> Text:
        """The field's text."""
        return Text(task.fields[self._field], no_wrap=True, overflow="ellipsis")


def _last_line(event: StepNote | StepFinished | StepFailed) -> Text:
    match event:
        case StepNote():
            return Text(printable(f"note   {event.step}: {event.text}"))
        case StepFinished(cached=True):
            return Text(printable(f"cached {event.step}"), style="dim")
        case StepFinished():
            line = Text("made   ", style="green")
            return line.append(
                printable(f"{event.step}  {duration(event.seconds)}"), style="default"
            )
        case StepFailed(interrupted=True):
            line = Text("stopped", style="yellow")
            return line.append(
                printable(f" {event.step}  {duration(event.seconds)}"), style="default"
            )
        case StepFailed(retried=True):
            line = Text("failed ", style="yellow")
            line.append(printable(f"{event.step}  {duration(event.seconds)}: "), style="default")
            why = event.message.removeprefix(f"{event.step}: ").partition("\n")[0]
            return line.append(printable(f"{why}; a remedy is tried"))
        case StepFailed():
            line = Text("FAILED ", style="bold red")
            log = f" (log: {event.log})" if event.log else ""
            line.append(printable(f"{event.step}  {duration(event.seconds)}: "), style="default")
            # The engine names the step in the message, for the line that ends the run.
            return line.append(printable(f"{event.message.removeprefix(f'{event.step}: ')}{log}"))
