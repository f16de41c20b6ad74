"""The console of standard error."""

from __future__ import annotations

from typing import Any

from rich.console import Console


class ErrorConsole(Console):
    """Standard error; once nobody reads it any more, what is printed there is dropped, and the run
    goes on. Rich itself would end the thread that printed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(stderr=True, **options)

    def on_broken_pipe(self) -> None:
        """Drop what follows."""
        self.quiet = True
