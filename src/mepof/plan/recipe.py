"""The recipe and the reproducer script next to every step's log.

The recipe holds the step and the paths of its inputs, so that the step can run alone. Because
inputs are identified by content, the step has the same fingerprint as in its plan: it resumes
in the same scratch directory, and the plan uses its result.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mepof.errors import InputError
from mepof.plan.body import StepContext
from mepof.plan.model import HostInput, Plan, Step
from mepof.plan.orphans import MARK, mark_of


def write_recipe(path: Path, step: Step, inputs: Mapping[str, Path]) -> None:
    """Write the recipe of a step with resolved inputs."""
    document = {
        "id": step.id,
        "kind": step.kind,
        "params": dict(step.params),
        "inputs": {name: str(source) for name, source in inputs.items()},
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


def recipe_plan(path: Path) -> Plan:
    """The plan of one step that a recipe describes.

    Raises:
        InputError: the file is missing or is not a recipe.
    """
    try:
        document = json.loads(path.read_text())
        step = Step(
            str(document["id"]),
            str(document["kind"]),
            dict(document["params"]),
            {name: HostInput(str(source)) for name, source in document["inputs"].items()},
        )
    except OSError as error:
        raise InputError(f"the recipe {path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not the recipe of a step") from error
    return Plan(program="", seed=0, steps=(step,), results=())


def write_reproducer(path: Path, store: Path, recipe: Path, step: Step) -> None:
    """Write the script that runs the step again; commands are appended as they run."""
    command = shlex.join(["mepof", "step", "--store", str(store), "--recipe", str(recipe)])
    path.write_text(
        "#!/bin/sh\n"
        f"# Runs the step {step.id} again, alone, with the same parameters and inputs.\n"
        f'exec {command} "$@"\n'
        "\n"
        "# Not reached: the commands that it ran, to be pasted one at a time.\n"
    )
    path.chmod(0o755)


def pasteable(argv: Sequence[str | Path], cwd: Path | None, env: Mapping[str, str] | None) -> str:
    """A shell line that runs the command in the same directory with the same variables."""
    assignments = ["env", *(f"{name}={value}" for name, value in env.items())] if env else []
    words = shlex.join([*assignments, *(os.fspath(word) for word in argv)])
    return f"(cd {shlex.quote(str((cwd or Path()).absolute()))} && {words})"


@dataclass(frozen=True, kw_only=True)
class RecordingContext(StepContext):
    """A context that writes every command to the reproducer, and marks the children so that a
    later run finds those that survived this one."""

    script: Path

    def command_started(
        self, argv: Sequence[str | Path], cwd: Path | None, env: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Write the command to the reproducer, and mark it."""
        with self.script.open("a") as script:
            script.write(pasteable(argv, cwd, env) + "\n")
        return {**env, MARK: mark_of(self.work)}
