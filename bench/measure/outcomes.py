"""Programs that may fail, run as a user would, and what came out of each."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from measure.left import COUNTED, geometric, left_percent, saved
from measure.program import MEPOF, report_of
from mepof.toolchain.named import select

INSTRUCTIONS = "kernel_instructions"
#: The smallest configuration that boots, checks itself and runs the suite `mepof`.
TINY_CONFIG = Path(__file__).parents[1] / "compilers" / "tiny.config"

#: What came out of a program, as JSON.
Outcome = dict[str, Any]


def known(result: Path) -> dict[str, Outcome]:
    """The outcomes in a record, by name.

    Args:
        result: the record without ``.json``.
    """
    record = result.with_suffix(".json")
    return json.loads(record.read_text()) if record.is_file() else {}


def kept(
    result: Path,
    wanted: Mapping[str, Callable[[], Outcome]],
    page: Callable[[Mapping[str, Outcome]], str],
    *,
    again: bool,
) -> dict[str, Outcome]:
    """Get what has no outcome yet, and keep each as it comes: all of them, and those from before.

    Args:
        result: their record without ``.json``, and their page without ``.md``.
        wanted: what gives an outcome, by its name.
        page: makes the page.
        again: get all that is wanted.
    """
    results = known(result)
    for name, get in wanted.items():
        if again or name not in results:
            print(f"== {name}", flush=True)
            results[name] = get()
            result.with_suffix(".json").write_text(
                json.dumps(results, indent=1, sort_keys=True) + "\n"
            )
            result.with_suffix(".md").write_text(page(results))
    return results


def of_toolchain(
    title: str,
    metavar: str,
    result: Path,
    tried: Callable[[str, str, Sequence[str]], Outcome],
    page: Callable[[Mapping[str, Outcome]], str],
    failed: Callable[[Outcome], bool],
) -> None:
    """The command of a benchmark that tries what one toolchain makes; it ends with status 1 if
    something failed.

    Args:
        title: what the command does.
        metavar: how its help calls what is tried.
        result: as of :func:`kept`, with names such as ``clang-22/pgo``.
        tried: called with the toolchain, one of what is tried, and words that name the store.
        page: as of :func:`kept`.
        failed: whether an outcome is a failure.
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--again", action="store_true", help="run what has a result too")
    parser.add_argument("--store", type=Path)
    parser.add_argument("toolchain", metavar="TOOLCHAIN")
    parser.add_argument("tried", nargs="+", metavar=metavar)
    arguments = parser.parse_args()
    chosen = select(arguments.toolchain)
    name = f"{chosen.family}-{chosen.version.partition('.')[0]}"
    where = ["--store", str(arguments.store)] if arguments.store is not None else []
    wanted = {
        f"{name}/{one}": partial(tried, arguments.toolchain, one, where) for one in arguments.tried
    }
    results = kept(result, wanted, page, again=arguments.again)
    if any(failed(results[one]) for one in wanted):
        sys.exit(1)


def tried(text: str, out: Path, where: Sequence[str]) -> Outcome:
    """Run a program that compares ``opt`` with ``plain``; its arguments are as of :func:`ran`."""
    return ran(text, out, where) or measured(report_of(out))


def ran(text: str, out: Path, where: Sequence[str]) -> Outcome | None:
    """Run a program: the outcome if it fails.

    Args:
        out: directory of the program and its results.
        where: words that name the store.
    """
    out.mkdir(parents=True, exist_ok=True)
    program = out / "program.g4"
    program.write_text(text)
    status, reason = ended(["run", program, "--out", out, *where])
    return None if status == 0 else {"outcome": "failed", "reason": reason}


def ended(words: Sequence[str | Path]) -> tuple[int, str]:
    """Run mepof, whose words go on to the terminal: its status, and what it says went wrong."""
    process = subprocess.Popen([MEPOF, *words], stderr=subprocess.PIPE, text=True)
    last = ""
    assert process.stderr is not None
    for line in process.stderr:
        sys.stderr.write(line)
        if line.startswith("mepof: "):
            last = line.removeprefix("mepof: ").strip()
    # Interrupted, or something is missing here: that is no answer.
    if (status := process.wait()) not in (0, 1):
        sys.exit(abs(status))
    return status, last


def measured(report: Mapping[str, Any]) -> Outcome:
    """What is kept of a report."""
    (left,) = left_percent(report, COUNTED).values()
    text = {image["name"]: image["size_bytes"]["text"] for image in report["images"]}
    return {
        "outcome": "measured",
        "kernel": report["provenance"]["kernel"],
        "tools": report["provenance"]["tools"],
        "booted": all(image["booted"] for image in report["images"]),
        "left_percent": left,
        "text_percent": 100 * text["opt"] / text["plain"],
    }


def figures(outcome: Outcome) -> list[str]:
    """Cells of a table for a kernel that was measured: its release, whether it booted, percent
    fewer of what is counted, and the growth of its text in percent."""
    fewer = [saved(geometric(outcome["left_percent"][metric])) for metric in COUNTED]
    state = "booted" if outcome["booted"] else "does not boot"
    return [outcome["kernel"], state, *fewer, f"{outcome['text_percent'] - 100:+.1f}"]


def failed(outcome: Outcome) -> bool:
    """Whether a kernel that fits does not boot, or does not beat its baseline."""
    if outcome["outcome"] != "measured":
        return bool(outcome["outcome"] == "failed")
    return not outcome["booted"] or geometric(outcome["left_percent"][INSTRUCTIONS]) >= 100
