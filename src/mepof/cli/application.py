"""Groups of commands that share one look of their help pages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

import mepof

Function = TypeVar("Function", bound=Callable[..., Any])

# The sections of a docstring that are for whoever calls the function from Python.
_SECTIONS = re.compile(r"^(?:Args|Raises|Returns|Yields):\n.*", re.MULTILINE | re.DOTALL)


class Commands(typer.Typer):
    """A group of commands, each helped by the part of its docstring that is for users.

    Help is plain text: boxes leave too little of 80 columns, and their markup swallows
    brackets.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            **{
                "no_args_is_help": True,
                "add_completion": False,
                "rich_markup_mode": None,
                "pretty_exceptions_enable": False,
                "context_settings": {"help_option_names": ["-h", "--help"]},
                **settings,
            }
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        """Register a command, as :meth:`typer.Typer.command` does."""
        register = super().command

        def registered(function: Function) -> Function:
            return register(name, **{"help": help_of(function), **settings})(function)

        return registered


def completing(*known: str) -> Callable[[str], list[str]]:
    """What a shell completes an option with: the known words that begin like it."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    return complete


def help_of(function: Callable[..., Any]) -> str:
    """A function's docstring without the sections on arguments and errors."""
    return _SECTIONS.sub("", inspect.getdoc(function) or "").strip()


def _show_version(context: typer.Context, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        typer.echo(f"{context.find_root().info_name} {mepof.__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
]
