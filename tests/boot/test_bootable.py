"""A kernel that hangs early in its boot where one of its files is instrumented, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.kernel.description import Safety
from mepof.plan.explain import Explanation
from mepof.profile.artifact import ProfileDescription
from mepof.scenario.collection import Collection

pytestmark = [pytest.mark.boot, pytest.mark.rounds]

# The training runs this file, so that it is instrumented, and the boot long before the console.
SABOTAGED = "arch/x86/kernel/tsc.c"
FUNCTION = "void __init tsc_early_init(void)\n{\n"
HANG = "#ifdef __LLVM_INSTR_PROFILE_GENERATE\n\tfor (;;)\n\t\tcpu_relax();\n#endif\n"
PROGRAM = "set seed 1.\nprofile {tree} pgo rand kbench.\n"


@pytest.fixture
def tree(copied_tree: Path) -> Path:
    """The quickstart's tree, with a file that waits for ever if it is instrumented."""
    file = copied_tree / SABOTAGED
    text = file.read_text(encoding="utf-8")
    assert text.count(FUNCTION) == 1
    file.write_text(text.replace(FUNCTION, FUNCTION + HANG), encoding="utf-8")
    return copied_tree


def test_a_kernel_that_hangs_instrumented_is_profiled_without_the_file_that_hangs(
    executor: LocalExecutor, tree: Path, tmp_path: Path
) -> None:
    plan = plan_of(Source("p.g4", PROGRAM.format(tree=tree)))
    steps = executor.run(plan, tmp_path / "out", lambda event: None).run.steps
    safety = Safety.read(steps["profile/instrument/bootable"].path)
    assert safety.opt_out.files == ("arch/x86/kernel/tsc.o",)
    assert safety.failure is not None and "did not come up" in safety.failure
    assert safety.trials is not None and 4 < safety.trials <= 15
    # The kernel that boots was trained, and the files around that one were counted.
    known = Collection.read(steps["profile/collect"].path)
    assert known.not_instrumented is not None
    assert known.not_instrumented.files == safety.opt_out.files
    assert ProfileDescription.read(steps["profile/profile"].path).quality.executed > 1000
    # The next run knows it.
    explained: tuple[Explanation, ...] = executor.explain(plan)
    assert {each.state for each in explained} == {"cached"}
