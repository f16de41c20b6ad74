"""Stands for ``mepof run -``: a plan of two toy steps, the first of which waits for a file."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from plan.toy_bodies import Toy, plan_of, toy

from mepof.errors import Interrupted
from mepof.plan.body import StepContext
from mepof.plan.engine import Engine
from mepof.plan.model import Plan
from mepof.plan.store import Store


def work(context: StepContext) -> None:
    """Wait for ``go`` beside the output directories, or for an interrupt."""
    while not (out.parent / "go").exists():
        if context.cancel.wait(0.02):
            raise Interrupted("interrupted")
    (context.output / "file").write_text(context.step.id)


assert sys.argv[1] == "--out" and sys.argv[3] == "--store"
out, store = Path(sys.argv[2]), Store(Path(sys.argv[4]))
text = sys.stdin.read()
print(f"the program has {len(text)} characters", flush=True)
steps = plan_of(toy("first", waits=True), toy("second", "first")).steps
if "memory" in text:
    sys.exit("it cannot be planned")
Engine(store, {"toy": Toy(work)}, 1, lambda event: None).run(Plan(text, 1, steps, ()), out)
