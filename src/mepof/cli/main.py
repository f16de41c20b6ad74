"""The command ``mepof``."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterable

import typer

from mepof.cli.output import tell, tell_usage
from mepof.errors import InputError, Interrupted, MepofError

# Not public under its own name; the public error is one of it.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

# Each verb: its module, and the function or group of verbs there. A verb's module is imported only
# when it is asked for: together they take longer than a conversion.
VERBS = {
    "run": ("mepof.cli.run", "run"),
    "g4": ("mepof.cli.g4", "app"),
    "profile": ("mepof.cli.profile", "app"),
    "eval": ("mepof.cli.evaluate", "evaluate"),
    "report": ("mepof.cli.report", "report"),
    "device": ("mepof.cli.device", "app"),
    "doctor": ("mepof.cli.doctor", "doctor"),
    "step": ("mepof.cli.step", "step"),
}


def application(verbs: Iterable[str] = tuple(VERBS)) -> typer.Typer:
    """The command with some of its verbs."""
    app = typer.Typer(
        name="mepof",
        help="End-to-end profile-guided optimisation of Linux and Android kernels.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    # One verb alone would stand for the command itself.
    app.callback()(lambda: None)
    for name in verbs:
        module, attribute = VERBS[name]
        verb = getattr(importlib.import_module(module), attribute)
        if isinstance(verb, typer.Typer):
            app.add_typer(verb, name=name)
        else:
            app.command(name)(verb)
    return app


def __getattr__(name: str) -> typer.Typer:
    if name == "app":
        return application()
    raise AttributeError(name)


def guarded(command: typer.Typer) -> None:
    """Run a command; every expected error is one line and the right exit status."""
    try:
        status = command(standalone_mode=False)
    except MepofError as error:
        tell(error)
        sys.exit(error.exit_status)
    except _UsageError as error:
        tell_usage(error)
        sys.exit(InputError.exit_status)
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_status)
    except BrokenPipeError:
        sys.exit(0)
    except Exception as error:
        traceback.print_exc()
        print(f"mepof: this is a bug of mepof's, please report it: {error}", file=sys.stderr)
        sys.exit(1)
    # The library turns an interrupt into a status of its own.
    sys.exit(status if isinstance(status, int) else 0)


def main() -> None:
    """Entry point of ``mepof``."""
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    guarded(application([verb] if verb in VERBS else VERBS))
