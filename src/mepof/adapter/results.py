"""What a run has made, beyond what it copies into its directory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mepof.adapter.published import Origin
from mepof.adapter.reuse import Trained
from mepof.errors import InputError
from mepof.kernel.selection import Selection
from mepof.plan.document import to_document
from mepof.plan.journal import read_runs
from mepof.plan.model import HostInput, Input, Plan, ResultKind, Step
from mepof.plan.store import Store
from mepof.profile.artifact import ProfileDescription
from mepof.spec.profile_renew import ProfileRenew

#: Directory of whole profiles. The ending of each names its algorithm, as that of a file does.
PROFILES = "profiles"
_DESCRIBED: dict[str, dict[str, str]] = {
    "image": {"config": "config", "build.json": "build.json", "System.map": "System.map"},
    "profile": {ProfileDescription.file: "profile.json"},
}

#: The artifacts of results, by the result's name and kind.
Artifacts = Mapping[tuple[str, ResultKind], Path]


def artifacts(out: Path) -> Artifacts:
    """The artifacts of the results of the last run in a directory; none if none ran there."""
    plan, made = last_run(out)
    return {
        (each["name"], each["kind"]): made[each["step"]]
        for each in plan.get("results", ())
        if each["step"] in made
    }


def instrumented(out: Path, name: str) -> tuple[str, ...] | None:
    """The C files that were instrumented for the profile of a result of the last run in a
    directory, in alphabetical order; None where nothing tells."""
    plan, made = last_run(out)
    steps = {each["id"]: each for each in plan.get("steps", ())}
    wanted = (name, "profile")
    results = plan.get("results", ())
    found = next((each["step"] for each in results if (each["name"], each["kind"]) == wanted), None)
    if found in steps and steps[found]["kind"] == ProfileRenew.kind:
        found = steps[found]["inputs"]["new"].get("step")
    selection = Selection.find(made[found]) if found in made else None
    if selection is None:
        return None
    return tuple(sorted(f"{each.name.removesuffix('.o')}.c" for each in selection.objects))


def last_run(out: Path) -> tuple[dict[str, Any], dict[str, Path]]:
    """The plan of the last run in a directory, and the artifacts of its steps; both empty if none
    ran there. A run that was interrupted leaves no plan."""
    try:
        # One that was refused before it began made nothing.
        runs = [run for run in read_runs(out) if run.store]
    except (FileNotFoundError, NotADirectoryError):
        return {}, {}
    if not runs:
        return {}, {}
    try:
        plan = json.loads((out / "plan.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        plan = {}
    store = Store(Path(runs[-1].store))
    steps = runs[-1].steps.items()
    return plan, {name: store.object(step.digest) for name, step in steps if step.digest}


def described(found: Artifacts) -> Iterator[tuple[str, Path]]:
    """What belongs to results: configurations, symbols and descriptions, by the names of the
    files to publish."""
    for (name, kind), path in found.items():
        for file, suffix in _DESCRIBED.get(kind, {}).items():
            if (path / file).is_file():
                yield f"{name}.{suffix}", path / file


def whole_profiles(origins: Mapping[str, Origin], found: Artifacts) -> Iterator[tuple[str, Path]]:
    """The files of the profiles that a run made, by the names to publish.

    Args:
        origins: by result.
    """
    for name, each in origins.items():
        if each.artifact is not None:
            for file in sorted(found[name, "profile"].iterdir()):
                yield f"{each.artifact}/{file.name}", file


def origins(
    results: Iterable[Trained], out: Path, found: Artifacts, source: Step, release: str
) -> dict[str, Origin]:
    """Where the profiles that a run made come from, by result.

    Args:
        source: the step that fetched the release.
    """
    document = to_document(Plan("", 0, (source,), ()))["steps"]
    assert isinstance(document, list) and isinstance(document[0], dict)
    made = {}
    for each in results:
        file = f"{each.name}.{each.suffix}"
        if (out / file).is_file():
            artifact = found.get((each.name, "profile"))
            known = None if artifact is None else ProfileDescription.find(artifact)
            made[each.name] = Origin(
                file=file,
                release=release,
                artifact=None if artifact is None else f"{PROFILES}/{file}",
                source=dict(document[0]),
                objects=None if known is None else known.executed_objects,
            )
    return made


def source_step(origin: Origin) -> Step:
    """The step that fetches the source of which a profile is.

    Raises:
        InputError: it is not one.
    """
    match origin.source:
        case {"id": str(name), "kind": str(kind), "params": dict(params), "inputs": dict(inputs)}:
            given: dict[str, Input] = {
                key: HostInput(value["host"]) for key, value in inputs.items() if "host" in value
            }
            return Step(name, kind, params, given)
    raise InputError("the provenance of the profile does not name its source")
