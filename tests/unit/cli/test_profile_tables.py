"""How the facts about profiles are laid out."""

from __future__ import annotations

import io

from rich.console import Console
from rich.text import Text

from mepof.cli.profile_tables import FactTable


def printed(facts: FactTable, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(facts, crop=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_fact_is_wrapped_between_words_only() -> None:
    facts = FactTable()
    path = "/root/.cache/mepof/objects/" + "5" * 64 + "/vmlinux"
    facts.add_row(Text("binary"), Text(f"{path}: build-id matches"))
    facts.add_row(Text("  note"), Text("the input does not say where it ran"))
    assert printed(facts, 40) == (
        f"binary  {path}:\n"
        "        build-id matches\n"
        "  note  the input does not say where it\n"
        "        ran\n"
    )


def test_facts_stand_in_a_column_on_the_narrowest_terminal() -> None:
    facts = FactTable()
    facts.add_row(Text(), Text(""))
    facts.add_row(Text("sampling"), Text("one word after another and so on"))
    assert printed(facts, 5) == ("\nsampling  one word after\n          another and so on\n")
