"""Groups of commands that share one look of their help pages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
import typer.core

import mepof

Function = TypeVar("Function", bound=Callable[..., Any])

# A wrong command line. It is not public under its own name; the public error is one of it.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

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
            own = {"help": help_of(function), "cls": _Command, **settings}
            return register(name, **own)(function)

        return registered


class _Command(typer.core.TyperCommand):
    """Names arguments on its help page as people do: the library adds braces and Python's types."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            # An option without its argument is reported without the command.
            vars(error)["ctx"] = vars(error).get("ctx") or ctx
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return [re.sub(r"^\{(.*)\}(\.\.\.)?$", r"\1\2", piece) for piece in pieces]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                rows["Arguments"].append((parameter.metavar or record[0], record[1]))
            else:
                rows["Options"].append(record)
        for title, records in rows.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


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
