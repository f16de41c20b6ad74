"""``mepof doctor``: what this machine has, what mepof needs, and what mends the difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mepof.cli.output import Json, print_json
from mepof.errors import EnvironmentLack
from mepof.executor.local import default_store
from mepof.toolchain.probe import Finding
from mepof.toolchain.requirements import findings


def doctor(as_json: Json = False) -> None:
    """List every tool with its version, whether it suffices, and what mends it.

    Raises:
        EnvironmentLack: something is not there without which mepof cannot work.
    """
    found = findings(default_store())
    lacking = [finding.name for finding in found if finding.stops]
    if as_json:
        print_json(
            {
                "schema": "mepof-doctor/1",
                "ok": not lacking,
                "findings": [asdict(finding) for finding in found],
            }
        )
    else:
        console = Console(highlight=False)
        console.print(table(found))
        for command, names in remedies(found).items():
            console.print(
                f"{', '.join(names)}:", f"  {command}", sep="\n", soft_wrap=True, markup=False
            )
    if lacking:
        raise EnvironmentLack(f"this machine lacks {', '.join(lacking)}", "run `make setup`")


def table(found: Sequence[Finding]) -> Table:
    """The findings for people."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("what", "found", "needed", "", "for"):
        shown.add_column(heading, no_wrap=heading not in ("found", "for"), overflow="fold")
    for finding in found:
        shown.add_row(
            Text(finding.name),
            Text(finding.found or "-"),
            Text(finding.needed),
            _state(finding),
            Text(finding.purpose),
        )
    return shown


def remedies(found: Sequence[Finding]) -> dict[str, list[str]]:
    """Each command that mends something, and the names of what it mends."""
    mended: dict[str, list[str]] = {}
    for finding in found:
        if finding.remedy is not None:
            mended.setdefault(finding.remedy, []).append(finding.name)
    return mended


def _state(finding: Finding) -> Text:
    if finding.state == "ok":
        return Text("ok", style="green")
    if finding.required:
        return Text(finding.state, style="bold red")
    return Text(f"{finding.state} (optional)", style="yellow")
