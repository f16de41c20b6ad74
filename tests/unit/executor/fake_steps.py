"""Steps of a few lines that workers can load, for the tests of executors."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mepof.device.attached import claim
from mepof.device.protocol import DEVICES
from mepof.errors import EnvironmentLack, Interrupted, WorkError
from mepof.plan.action import Artifact
from mepof.plan.body import Phase, Resources, StepBody, StepContext
from mepof.plan.model import Input, Json, Plan, Result, Step, StepInput
from mepof.plan.store import Store

#: How long a worker that "is_cut" can neither send nor receive.
CUT_SECONDS = 60.0


class Fake:
    """Writes its parameters and inputs; ``once`` names what goes wrong the first time.

    ``once`` is a fault and the path of a file that says that it has happened.
    """

    kind = "fake"
    phase: Phase = "other"
    volatile = False

    def resources(self, step: Step) -> Resources:
        needs = step.params.get("needs")
        return Resources(int(str(step.params.get("cores", 1))), None, False, _words(needs))

    def identity(self, step: Step) -> Mapping[str, str]:
        lacking = step.params.get("lacks_at")
        if lacking is not None and Path(str(lacking)).exists() and _is_worker():
            raise EnvironmentLack("clang is not installed", "apt-get install clang")
        once = step.params.get("lacks_on")
        if once is not None and _is_worker() and _is_of_first(Path(str(once))):
            raise EnvironmentLack("clang is not installed", "apt-get install clang")
        return {"tool": "1"}

    def run(self, context: StepContext) -> None:
        fault, _, mark = str(context.params.get("once", "")).partition(":")
        if fault and _first(Path(mark)):
            _misbehave(fault, context)
        if "full" in context.params:
            Path("/dev/full").write_text("more than fits")
        if "slow" in context.params:
            context.run(["sleep", str(context.params["slow"])])
        context.note(f"runs in {os.getpid()}")
        lines = [_shown(context)]
        for name, source in sorted(context.inputs.items()):
            files = [source] if source.is_file() else sorted(source.rglob("*"))
            lines += [f"{name}: {p.read_text()}" for p in files if p.is_file()]
        (context.output / "text").write_text("\n".join(lines))
        (context.log).open("a").write(f"ran {context.step.id}\n")


class Page(Fake):
    """Runs every time, and reads the journal."""

    kind = "page"
    volatile = True

    def run(self, context: StepContext) -> None:
        assert context.journal is not None and not _is_worker()
        super().run(context)


class Spread(Fake):
    """Has workers write its parts."""

    kind = "spread"

    def resources(self, step: Step) -> Resources:
        return Resources(64, part=Resources(memory=100, needs=_words(step.params.get("needs"))))

    def run(self, context: StepContext) -> None:
        names = [f"part {number}" for number in range(int(str(context.params["parts"])))]
        if context.parts is None:
            made = [self.part(context, name) for name in names]
        else:
            context.note(f"runs in {os.getpid()}, {context.parts.width} at a time")
            with ThreadPoolExecutor(context.parts.width) as pool:
                made = list(pool.map(context.parts.call, names))
        (context.output / "text").write_bytes(b"".join(made))

    def part(self, context: StepContext, name: str) -> bytes:
        if name == "part 1" and "once" in context.params:
            fault, _, mark = str(context.params["once"]).partition(":")
            if _first(Path(mark)):
                _misbehave(fault, context)
        if "meet" in context.params:
            # Both workers must come here at the same time.
            folder = Path(str(context.params["meet"]))
            folder.joinpath(str(os.getpid())).touch()
            deadline = time.monotonic() + 30
            while len(list(folder.iterdir())) < 2 and time.monotonic() < deadline:
                pass
        with context.log.open("a") as log:
            log.write(f"made {name} in {os.getpid()}\n")
        return f"{name} of {context.inputs['first'].joinpath('text').read_text()}\n".encode()


def _shown(context: StepContext) -> str:
    shown = {k: v for k, v in context.params.items() if k != "once"}
    return json.dumps(shown, sort_keys=True)


class OnPhone(Fake):
    """Says which phone it uses, and waits until the file ``until`` exists."""

    kind = "on-phone"

    def resources(self, step: Step) -> Resources:
        return Resources(device=DEVICES.get("phone").claim("arm64"))

    def run(self, context: StepContext) -> None:
        context.note(f"uses {claim().name} in {os.getpid()}")
        until = context.params.get("until")
        while until is not None and not Path(str(until)).exists():
            if context.cancel.wait(0.05):
                raise Interrupted("interrupted")
        super().run(context)


def bodies() -> Mapping[str, StepBody]:
    return {"fake": Fake(), "page": Page(), "spread": Spread(), "on-phone": OnPhone()}


def _words(given: Json) -> frozenset[str]:
    return frozenset(str(given).split()) if given else frozenset()


def _is_worker() -> bool:
    from distributed.worker import Worker

    return bool(Worker._instances)


def _is_of_first(mark: Path) -> bool:
    """Whether this process was the first one to ask."""
    if _first(mark):
        mark.write_text(str(os.getpid()))
    return mark.read_text() == str(os.getpid())


def _first(mark: Path) -> bool:
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _misbehave(fault: str, context: StepContext) -> None:
    match fault:
        case "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hangs":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "fails":
            raise WorkError("the link failed", "add memory")
        case "waits":
            context.cancel.wait(60)
            raise WorkError("not interrupted" if not context.cancel.is_set() else "interrupted")
        case "crashes":
            raise ZeroDivisionError("a bug")
        case "damages":
            _TO_DAMAGE.add(_shown(context))
            Store.commit = _commit_damaged  # type: ignore[assignment,method-assign]
        case "fills":
            Path("/dev/full").write_text("more than fits")
        case "is_cut":
            from distributed import get_worker

            # Nothing comes or goes, and the step goes on.
            get_worker().loop.add_callback(time.sleep, CUT_SECONDS)


def replace_worker() -> None:
    """End this worker, after it has answered: another one is started in its stead."""
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()


_commit = Store.commit
_TO_DAMAGE: set[str] = set()


def _commit_damaged(store: Store, tree: Path, wanted: str | None = None) -> Artifact:
    """Commit, and change a file of the artifact if it is one of those."""
    artifact = _commit(store, tree, wanted)
    path = store.object(artifact.digest) / "text"
    shown = path.read_text().partition("\n")[0] if path.is_file() else ""
    if shown in _TO_DAMAGE:
        _TO_DAMAGE.remove(shown)
        path.chmod(0o644)
        path.write_bytes(bytes(len(path.read_bytes())))
    return artifact


def fake(identifier: str, *after: str, kind: str = "fake", **params: Json) -> Step:
    """A step that reads the artifacts of the steps ``after``."""
    inputs: dict[str, Input] = {name: StepInput(name) for name in after}
    return Step(identifier, kind, params, inputs)


def plan_of(*steps: Step) -> Plan:
    """A plan whose result is the last step."""
    return Plan("a program.", 7, steps, (Result("m", "measurement", steps[-1].id),))
