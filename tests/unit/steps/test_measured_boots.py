"""Boots of a measurement that other machines make: the same evaluation, to the byte."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Condition

import pytest

from mepof.device import agent
from mepof.device.protocol import Interval
from mepof.errors import WorkError
from mepof.events import StepNote, StepProgress
from mepof.measure.measurement import read_evaluation
from mepof.plan.body import Elsewhere, StepContext
from mepof.plan.model import Step
from mepof.pmu.events import EVENTS
from mepof.steps import measure
from mepof.suite.cases import cases_of, memory_of

from .room import FakeDevice, Room, well
from .test_measure import ALONE, IMAGE, image, measuring


@dataclass
class Afar:
    """Another machine, with a cache of its own, that keeps the names of the parts it performed.

    Attributes:
        broken: names of parts that fail.
        awaited: by the name of a part, others that are asked for before it ends.
    """

    context: StepContext
    root: Path
    broken: frozenset[str] = frozenset()
    awaited: Mapping[str, Collection[str]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    _asked: Condition = field(default_factory=Condition)

    def call(self, name: str) -> bytes:
        with self._asked:
            self.names.append(name)
            self._asked.notify_all()
            awaited = frozenset(self.awaited.get(name, ()))
            self._asked.wait_for(lambda: awaited <= {*self.names}, timeout=60)
        if name in self.broken:
            raise WorkError(f"{name} hung")
        work = self.root / name.replace(" ", "-")
        work.mkdir(parents=True)
        there = replace(self.context, work=work, output=work, cache=self.root / "cache")
        return measure.BODY.part(there, name)


def spread(
    context: StepContext,
    root: Path,
    width: int,
    *broken: str,
    awaited: Mapping[str, Collection[str]] | None = None,
) -> tuple[bytes, Afar]:
    """The evaluation of a measurement whose boots are made elsewhere, and what was made there."""
    afar = Afar(context, root, frozenset(broken), awaited or {})
    cache = root / "here"
    measure.BODY.run(replace(context, cache=cache, parts=Elsewhere(width, afar.call)))
    return (context.output / "evaluation.json").read_bytes(), afar


def test_boots_that_others_make_give_the_same_evaluation(room: Room, device: FakeDevice) -> None:
    device.mode = "icount"
    given = {"images__0": image(room, "a"), "images__1": image(room, "b")}
    context = measuring(room, device, **given)
    measure.BODY.run(context)
    here = (context.output / "evaluation.json").read_bytes()
    shown = [event.text for event in room.events if isinstance(event, StepProgress)]
    # Before the guest answers, and when it has; the other image may boot at the same time.
    of_first = [text for text in shown if text.startswith("image 0, seed 4")]
    assert of_first[:2] == ["image 0, seed 4: booting"] * 2
    far, afar = spread(context, room.root / "far", 1)
    assert far == here
    rounds = ["boot 0 4", "boot 1 4", "boot 2 1004", "boot 1 5", "boot 2 1005", "boot 0 5"]
    assert afar.names == ["memory 0", "memory 1", *rounds]
    # Boots that are kept here are not asked for again.
    again, nobody = spread(context, room.root / "far", 1)
    assert (again, nobody.names) == (here, [])


def test_later_rounds_begin_early_where_others_boot(room: Room, device: FakeDevice) -> None:
    device.mode = "icount"
    given = {"images__0": image(room, "a"), "images__1": image(room, "b")}
    context = measuring(room, device, **given)
    params = {**context.step.params, "max_boots": 9}
    context = replace(context, step=replace(context.step, params=params))
    measure.BODY.run(context)
    here = (context.output / "evaluation.json").read_bytes()
    # What further rounds give is never read.
    needed = len(read_evaluation(context.output / "evaluation.json").images[0].boots)
    assert needed < 9
    further = f"boot 0 {4 + needed}", f"boot 1 {4 + needed}"
    # The last boot that counts ends when they have begun, however slow this machine is.
    awaited = {f"boot 0 {4 + needed - 1}": further}
    far, afar = spread(context, room.root / "far", 7, *further, awaited=awaited)
    assert far == here
    assert {*further} <= {*afar.names}
    assert f"boot 0 {4 + needed + 2}" not in afar.names
    with pytest.raises(WorkError, match="boot 1 5 hung"):
        spread(context, room.root / "second", 7, "boot 1 5")


def test_locations_travel_with_their_boot(room: Room, device: FakeDevice) -> None:
    events = dict.fromkeys(EVENTS, 1)
    device.intervals = (Interval(1000, 2, 30, 4, events, events),)
    head = {"version": 1, "events": ["taken_branches", *EVENTS]}
    located = {"sites": [[4096, 4100, 2, 50, 3, *([0] * len(EVENTS))]], "slices": [[[1, 100]]]}
    device.locations = json.dumps(head) + "\n" + json.dumps(located) + "\n"
    device.mode = "icount"
    context = measuring(room, device, "zen4", images__0=image(room, "a"))
    measure.BODY.run(context)
    made = {path.name: path.read_bytes() for path in context.output.iterdir()}
    assert "places0.json" in made
    for path in context.output.iterdir():
        path.unlink()
    spread(context, room.root / "far", 2)
    assert {path.name: path.read_bytes() for path in context.output.iterdir()} == made


def test_only_boots_that_are_the_same_anywhere_are_made_elsewhere(device: FakeDevice) -> None:
    step = Step("m", "measure", ALONE, IMAGE)
    assert measure.BODY.resources(step).part is None
    device.mode = "icount"
    part = measure.BODY.resources(step).part
    assert part is not None and part.cores == 1 and "x86-64" in part.needs
    assert part.memory > memory_of(cases_of(["proc"])), "the emulator takes memory, too"
    device.claimed = "board"
    assert measure.BODY.resources(step).part is None


SHOP = """
title = "Shop"
[[setup]]
name = "db"
argv = ["/db"]
seconds = 7
ready = {}
[[action]]
name = "buy"
argv = ["/shop"]
seconds = 9
"""


def test_the_log_of_a_service_that_failed_is_kept_wherever_the_boot_was(
    room: Room, device: FakeDevice
) -> None:
    def answer(request: agent.Request) -> agent.Reply:
        match request:
            case agent.Exec(argv=(_, "setup", "db")):
                text = b"the service `db` was killed by signal 11 before it was ready: line 29"
                return agent.ExecResult(1, 1, text, False)
            case agent.Get(path="/mepof/run/db.log"):
                return agent.GetResult(0, b"".join(b"line %d\n" % n for n in range(30)))
        return well(request)

    device.mode = "icount"
    context = measuring(room, device, images__0=image(room, "a"))
    device.answer = answer
    app = room.root / "app.toml"
    app.write_text(SHOP)
    programs = room.directory("shop", archive_cpio="")
    step = replace(
        context.step,
        params={**context.step.params, "metrics": [], "apps": [{"file": None, "programs": None}]},
    )
    inputs = {**context.inputs, "apps.0.file": app, "apps.0.programs": programs}
    context = replace(context, step=step, inputs=inputs, log=room.root / "measure-0a.log")
    measure.BODY.run(context)
    (found,) = read_evaluation(context.output / "evaluation.json").images
    how, *lines, whole = found.self_check.splitlines()
    said = "the service `db` was killed by signal 11 before it was ready"
    assert how == f"the app `Shop` failed: {said}"
    assert lines == [f"  | line {number}" for number in range(10, 30)]
    assert whole == f"  whole log: {room.root.name}/measure-0a.image0.db.log in the store"
    log = room.root / "measure-0a.image0.db.log"
    assert log.read_text().splitlines()[0] == "line 0"
    notes = [event.text for event in room.events if isinstance(event, StepNote)]
    assert notes == [f"the whole log of the service db: {log}"]
    log.unlink()
    here = (context.output / "evaluation.json").read_bytes()
    assert spread(context, room.root / "far", 1)[0] == here
    assert log.is_file()
