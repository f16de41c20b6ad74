"""Profiles of instrumented kernels, as ``mepof profile show`` and ``compare`` print them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from mepof.cli.profile_tables import FactTable, number_table, percent
from mepof.profile.counts import Comparison, FunctionCounts


def show_document(functions: Sequence[FunctionCounts], top: int) -> dict[str, Any]:
    """What is in a profile, with its hottest functions."""
    return {
        "kind": "instrumentation",
        "statistics": {
            "functions": len(functions),
            "functions_executed": sum(1 for function in functions if function.total),
            "counters": sum(len(function.blocks) for function in functions),
            "total": sum(function.total for function in functions),
        },
        "functions": [
            {"name": f.name, "total": f.total, "max": max(f.blocks, default=0)}
            for f in functions[:top]
        ],
    }


def compare_document(found: Comparison, top: int) -> dict[str, Any]:
    """How alike two profiles are, with the functions that set them most apart."""
    return {
        "kind": "instrumentation",
        "overlap": found.overlap,
        "functions": {
            "common": found.common,
            "changed": found.changed,
            "base_only": found.base_only,
            "test_only": found.test_only,
        },
        "differences": [asdict(difference) for difference in found.differences[:top]],
    }


def shown(document: dict[str, Any], path: Path) -> RenderableType:
    """What is in a profile."""
    has = document["statistics"]
    about = FactTable()
    about.add_row(Text("profile"), Text(f"{path}: counts of an instrumented kernel"))
    about.add_row(
        Text("functions"), Text(f"{has['functions']:,}, {has['functions_executed']:,} of them ran")
    )
    about.add_row(Text("counts"), Text(f"{has['total']:,} in {has['counters']:,} counters"))
    hot = number_table("function", "total", "share", "largest", numbers=3)
    for row in document["functions"]:
        hot.add_row(
            Text(row["name"]),
            Text(f"{row['total']:,}"),
            Text(percent(row["total"], has["total"])),
            Text(f"{row['max']:,}"),
        )
    return Group(about, hot) if document["functions"] else about


def comparison(document: dict[str, Any]) -> RenderableType:
    """How alike two profiles are."""
    has = document["functions"]
    about = FactTable()
    about.add_row(
        Text("overlap"),
        Text(f"{100 * document['overlap']:6.2f} %  as llvm-profdata overlap computes it"),
    )
    about.add_row(
        Text("functions"),
        Text(
            f"{has['common']:,} in both, {has['changed']:,} of them with other control flow; "
            f"{has['base_only']:,} only in A, {has['test_only']:,} only in B"
        ),
    )
    apart = number_table(
        "function", "share of A", "share of B", "takes from the overlap", numbers=3
    )
    for row in document["differences"]:
        lost = (row["base_share"] + row["test_share"]) / 2 - row["overlap"]
        shares = (row["base_share"], row["test_share"], lost)
        apart.add_row(Text(row["name"]), *(Text(f"{100 * share:.2f} %") for share in shares))
    return Group(about, apart) if document["differences"] else about
