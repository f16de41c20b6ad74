"""The command ``mepof``."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

import typer

from mepof.cli.application import Commands, UsageError, Version
from mepof.cli.output import tell, tell_usage
from mepof.disk import why_unwritable
from mepof.errors import InputError, Interrupted, MepofError, StoreFull
from mepof.plan.disk_full import means_full

# Each command: its module, and the function or group of commands there. A module is imported only
# when its command is called: together they take longer than a conversion.
COMMANDS = {
    "run": ("mepof.cli.run", "run"),
    "g4": ("mepof.cli.g4", "app"),
    "watch": ("mepof.cli.watch", "watch"),
    "adapt": ("mepof.cli.adapt", "app"),
    "profile": ("mepof.cli.profile", "app"),
    "eval": ("mepof.cli.evaluate", "evaluate"),
    "report": ("mepof.cli.report", "report"),
    "serve": ("mepof.cli.serve", "serve"),
    "device": ("mepof.cli.device", "app"),
    "bootimg": ("mepof.cli.bootimg", "app"),
    "phone": ("mepof.cli.phone", "phone"),
    "explored": ("mepof.cli.explored", "explored"),
    "doctor": ("mepof.cli.doctor", "doctor"),
    "worker": ("mepof.cli.worker", "worker"),
    "store": ("mepof.cli.store", "app"),
    "step": ("mepof.cli.step", "step"),
}


_SHELLS = ("bash", "zsh", "fish", "pwsh", "powershell")


def application(names: Iterable[str] = tuple(COMMANDS)) -> typer.Typer:
    """``mepof`` with some of its commands."""
    app = Commands(
        name="mepof",
        help="End-to-end profile-guided optimisation of Linux and Android kernels.",
        add_completion=True,
    )
    app.callback()(_options)  # without it, a command alone would stand for mepof itself
    for name in names:
        module, attribute = COMMANDS[name]
        command = getattr(importlib.import_module(module), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def _options(version: Version = False) -> None:
    """Options of ``mepof`` itself."""


def check_shell() -> None:
    """Check that the shell that runs ``mepof`` is one that it has completion for.

    Raises:
        InputError: it is not, or is unknown.
    """
    import shellingham  # loaded by the library, too, when it writes completion

    try:
        shell, _ = shellingham.detect_shell()
    except shellingham.ShellDetectionFailure:
        shell = "an unknown shell"
    if shell not in _SHELLS:
        raise InputError(
            f"mepof has no completion for {shell}", f"run it from {', '.join(_SHELLS)}"
        )


def check_directories() -> None:
    """Check the directories that programs get from the environment.

    Raises:
        InputError: the current one was removed, or ``TMPDIR`` is none that can be written.
    """
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise InputError("the current directory was removed", "change to another one") from error
    if given := os.environ.get("TMPDIR"):
        try:
            there = Path(given).exists()
            why = why_unwritable(Path(given)) if there else os.strerror(errno.ENOENT)
        except OSError as error:  # a name that is too long, a directory that is closed to us
            why = error.strerror
        if why:
            raise InputError(
                f"TMPDIR, {given}, cannot be used: {why}",
                "set it to another directory, or unset it",
            )


def __getattr__(name: str) -> typer.Typer:
    if name == "app":
        return application()
    raise AttributeError(name)


def guarded(command: typer.Typer, name: str) -> None:
    """Run a command; every expected error is one line and the right exit status.

    Args:
        name: what help pages call it.
    """
    try:
        status = command(standalone_mode=False, prog_name=name)
        sys.stdout.flush()  # at the end of the process, it fails too late
    except MepofError as error:
        tell(error)
        sys.exit(error.exit_status)
    except UsageError as error:
        tell_usage(error)
        sys.exit(InputError.exit_status)
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_status)
    except BrokenPipeError:
        sys.exit(0)
    except SystemExit as error:
        # The libraries make a failure of a broken pipe.
        sys.exit(0 if isinstance(error.__context__, BrokenPipeError) else error.code)
    except Exception as error:
        if means_full(error):  # a full disk behind anything else is named where it is used
            tell(StoreFull("no space left for the output", "free some, and run it again"))
            _drop_output()
            sys.exit(StoreFull.exit_status)
        traceback.print_exc()
        print(f"mepof: this is a bug in mepof, please report it: {error}", file=sys.stderr)
        sys.exit(1)
    # The library turns an interrupt into a status of its own.
    sys.exit(status if isinstance(status, int) else 0)


def _drop_output() -> None:
    """Have what standard output could not take not be written again at the end of the process."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Entry point of ``mepof``."""
    first = (_words_to_complete() or sys.argv)[1:2]
    _make_output_lenient()
    try:
        if first and first[0] in COMMANDS:
            check_directories()
        if first and first[0] in ("--install-completion", "--show-completion"):
            check_shell()
        # Modules name variants in their help, and one of another distribution may not fit.
        app = application(first if first and first[0] in COMMANDS else COMMANDS)
    except MepofError as error:
        tell(error)
        sys.exit(error.exit_status)
    except KeyboardInterrupt:  # modules take seconds to import on a busy machine
        sys.exit(Interrupted.exit_status)
    guarded(app, "mepof")


def _make_output_lenient() -> None:
    """Have standard output take characters that the locale lacks, and be there if it was closed."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    elif sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _words_to_complete() -> list[str]:
    """The command line so far, if a shell asks for its completion."""
    if "_MEPOF_COMPLETE" not in os.environ:
        return []
    return os.environ.get("COMP_WORDS", os.environ.get("_TYPER_COMPLETE_ARGS", "")).split()


if __name__ == "__main__":
    main()
