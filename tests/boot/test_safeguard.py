"""A kernel that goes down where one of its functions has a profile, which no message names."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.kernel.description import Safety
from mepof.plan.explain import Explanation

pytestmark = [pytest.mark.boot, pytest.mark.rounds]

# A function that is hot by its profile lies before those that are not: before one, too, that it
# follows in the source and in a kernel without a profile.
CULPRIT = """
void *const mepof_test_order[] = {generic_pipe_buf_get, pipe_write};
"""
# Another file relies on the order, as code does that was never linked in another one.
WITNESS = """
extern void *const mepof_test_order[];

static int __init mepof_test_check(void)
{
\tif (mepof_test_order[1] < mepof_test_order[0])
\t\tpanic("a function is not where it was");
\treturn 0;
}
late_initcall(mepof_test_check);
"""
PROGRAM = "set config slim.\nset seed 1.\nopt {tree} pgo rand kbench O2.\n"


@pytest.fixture
def tree(copied_tree: Path) -> Path:
    """The quickstart's tree, which relies on where a function lies."""
    for file, more in (("fs/pipe.c", CULPRIT), ("fs/fcntl.c", WITNESS)):
        with (copied_tree / file).open("a", encoding="utf-8") as text:
            text.write(more)
    return copied_tree


def test_a_kernel_that_its_profile_breaks_is_built_without_that_of_the_function(
    executor: LocalExecutor, tree: Path, tmp_path: Path
) -> None:
    plan = plan_of(Source("p.g4", PROGRAM.format(tree=tree)))
    steps = executor.run(plan, tmp_path / "out", lambda event: None).run.steps
    safety = Safety.read(steps["opt/build"].path)
    assert safety.booted
    assert safety.self_check == "passed"
    assert safety.failure is not None and "a function is not where it was" in safety.failure
    assert safety.opt_out.files == ()
    assert dict(safety.opt_out.functions) == {"fs/pipe.o": ("pipe_write",)}
    # The next run knows it.
    explained: tuple[Explanation, ...] = executor.explain(plan)
    assert {each.state for each in explained} == {"cached"}
