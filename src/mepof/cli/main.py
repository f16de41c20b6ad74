"""The command ``mepof``."""

from __future__ import annotations

import sys
import traceback

import typer

from mepof.cli import doctor, evaluate, g4, profile, report, run, step
from mepof.cli.output import tell, tell_usage
from mepof.errors import InputError, Interrupted, MepofError

# Not public under its own name; the public error is one of it.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="mepof",
    help="End-to-end profile-guided optimisation of Linux and Android kernels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(run.run)
app.add_typer(g4.app, name="g4")
app.add_typer(profile.app, name="profile")
app.command("eval")(evaluate.evaluate)
app.command("report")(report.report)
app.command("doctor")(doctor.doctor)
app.command("step")(step.step)


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
    guarded(app)
