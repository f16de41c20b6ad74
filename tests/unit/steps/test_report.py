"""The step ``report``."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from report.samples import LOCATIONS, measurement

from mepof.errors import WorkError
from mepof.kernel.description import Safety
from mepof.kernel.safeguard import OptOut
from mepof.kernel.selection import SelectedObject, Selection
from mepof.measure.measurement import Evaluation
from mepof.plan.journal import Journal
from mepof.plan.model import Json
from mepof.profile.quality import Quality
from mepof.report import Instrumented, read_report
from mepof.spec.report import ReportedImage
from mepof.steps import report

from .room import BUILD, Room, describe

COLLECTION = {
    "scenario": "trav",
    "apps": ["kbench"],
    "actions": ["syscall", "syscall"],
    "coverage": {"actions": 2, "ran": 1, "never": ["proc"]},
    "seed": 9,
    "release": "6.12.1",
    "not_instrumented": {"files": ["fs/a.o", "mm/b.o"], "trials": 17, "failure": "it hung"},
}
PARAMS: dict[str, Json] = {
    "images": [{"name": "a"}, {"name": "b", "trained": [0]}],
    "profiles": [{"name": "b"}],
    "program": "eval a;b.",
    "seed": 1,
    "collections": [None],
    "goals": [
        {"quantity": "worst", "bound": -1.0, "metric": "kernel_cycles"},
        {"quantity": "text", "bound": -5.0},
    ],
}


def test_a_report_combines_locations_trainings_and_the_journal(room: Room) -> None:
    plain, opt = measurement("plain", core="skylake"), measurement("opt", core="skylake")
    measured = room.directory("measured")
    text = Evaluation(images=(plain, opt)).model_dump_json()
    (measured / "evaluation.json").write_text(text)
    for number, name in enumerate(("plain", "opt")):
        (measured / f"places{number}.json").write_text(LOCATIONS[name].to_json())
    profile, collected = room.directory("profile"), room.directory("collected")
    describe(profile, "pgo", Quality(20, 5, 25.0, "poor", ("too few",), exact=True))
    Selection(
        objects=(SelectedObject(name="mm/a.o", text=5, weight=9),),
        files=40,
        text=50,
        weight=12,
        plain_image=1000,
        image=1100,
        limit=1200,
    ).write(profile)
    (collected / "collection.json").write_text(json.dumps(COLLECTION))
    journal = Journal(room.root)
    journal.write(
        "run",
        program="p",
        seed=1,
        tools={
            "/etc/passwd": "file 644 0:0 1f",
            "/etc": "directory 755 0:0",
            "clang": "22",
            "package libpq5": "15.14-0+deb12u1",
            "package postgresql-15": "15.14-0+deb12u1",
        },
        versions={},
        store="s",
        cores=2,
    )
    for event, step, phase, seconds in (
        ("start", "b/build", "build", 0.0),
        ("finish", "b/build", "build", 3.0),
        ("cached", "measure", "run", 2.0),
    ):
        journal.write(event, step=step, kind="x", fingerprint="f", phase=phase, seconds=seconds)
    journal.close()
    context = room.context(
        "report",
        PARAMS,
        evaluation=measured,
        profiles__0__profile=profile,
        collections__0=collected,
    )
    report.BODY.run(replace(context, journal=journal.path))
    made = read_report(context.output)
    assert [image.name for image in made.images] == ["a", "b"]
    listing = "/etc directory 755 0:0\n/etc/passwd file 644 0:0 1f\n"
    assert made.provenance.tools == {
        "clang": "22",
        "files in guests": f"2, SHA-256 of their listing {sha256(listing.encode()).hexdigest()}",
        "packages in guests": "libpq5 15.14-0+deb12u1, postgresql-15 15.14-0+deb12u1",
    }
    assert [(goal.image, goal.title, goal.met) for goal in made.goals] == [
        ("b", "worst -1 kernel_cycles", True),
        ("b", "text -5", False),
    ]
    assert made.core is not None
    assert made.core.name == "skylake"
    assert {row.image for row in made.functions} == {"b"}
    assert made.heatmaps is not None
    assert [heat.image for heat in made.heatmaps.images] == ["a", "b"]
    (training,) = made.trainings
    assert (training.image, training.scenario, training.seed) == ("b", "trav", 9)
    assert training.actions == {"syscall": 2}
    assert training.cases == ("mepof/syscall",)
    # Who reads the numbers knows what was not counted, and how to save the search.
    (warning,) = (text for text in made.warnings if "booting" in text)
    assert warning.startswith("nothing is counted in fs/a.o, mm/b.o: instrumenting that keeps ")
    assert "17 kernels were booted" in warning and "`set exclude fs/a.o,mm/b.o.`" in warning
    (quality,) = made.profiles
    assert (quality.name, quality.executed, quality.reasons) == ("b", 5, ("too few",))
    assert quality.instrumented == Instrumented(
        files=1,
        of_files=40,
        text_percent=10.0,
        time_percent=75.0,
        image_bytes=1100,
        growth_percent=10.0,
        limit_bytes=1200,
    )
    built, cached = made.phases
    assert (built.seconds, cached.cached, cached.started_seconds) == (3.0, True, None)
    assert built.started_seconds is not None
    assert built.waited_seconds is not None and cached.waited_seconds is None
    assert (context.output / "cases.csv").is_file()
    boots = (context.output / "boots.csv").read_text()
    assert {line.partition(",")[0] for line in boots.splitlines()} == {"image", "a", "b"}


def _build(
    room: Room, name: str, *lines: str, flags: tuple[str, ...] = (), profile: bool = True
) -> ReportedImage[Path]:
    made = room.directory(name)
    BUILD.model_copy(update={"config_lines": lines, "cflags": flags}).write(made)
    (made / "config").write_text("CONFIG_CC_OPTIMIZE_FOR_PERFORMANCE=y\n" + "\n".join(lines))
    if profile:
        Safety(
            booted=True,
            self_check="ok",
            release="6.12.7",
            opt_out=OptOut(),
            failure=None,
            objtool=(),
        ).write(made)
    return ReportedImage(name=name, build=made)


SPEED, THIN = "CONFIG_CC_OPTIMIZE_FOR_PERFORMANCE=y", "CONFIG_LTO_CLANG_THIN=y"


def test_a_gain_that_options_have_a_part_in_is_not_the_profiles_alone(room: Room) -> None:
    plain = _build(room, "plain", profile=False)
    usual = _build(room, "usual", SPEED, "CONFIG_DEBUG_FS=y", flags=("-fprofile",))
    opt = _build(room, "opt", SPEED, THIN, flags=("-O3", "-fprofile"))
    alone = _build(room, "alone", SPEED, THIN, flags=("-O3",), profile=False)
    assert [*report._notes_of_options([plain, usual])] == []
    assert [*report._notes_of_options([plain, usual, opt])] == [
        "opt is built with O3;ThinLTO and plain is not, so its gain is not due to its profile "
        "alone: `build PATH O3;ThinLTO.` makes the image to compare it with"
    ]
    assert [*report._notes_of_options([plain, alone, opt])] == []
    assert [*report._notes_of_options([alone, opt])] == []
    assert [*report._notes_of_options([ReportedImage(name="file"), opt])] == []


def test_a_report_needs_a_journal(room: Room) -> None:
    measured = room.directory("measured")
    images = (measurement("plain"), measurement("opt"))
    (measured / "evaluation.json").write_text(Evaluation(images=images).model_dump_json())
    with pytest.raises(WorkError, match="there is none"):
        inputs = dict.fromkeys(("evaluation", "profiles__0__profile", "collections__0"), measured)
        report.BODY.run(room.context("report", PARAMS, **inputs))


def test_the_command_contains_the_whole_program() -> None:
    assert report.command("eval a;b.\n") == (
        "mepof run /dev/stdin --out again <<'END'\neval a;b.\nEND"
    )
    assert report.command("# of\nEND\n.").endswith("<<'ENDD'\n# of\nEND\n.\nENDD")


def test_a_report_says_what_was_done_to_apps_of_a_phone(room: Room) -> None:
    measured, profile = room.directory("measured"), room.directory("profile")
    images = (measurement("plain"), measurement("opt"))
    (measured / "evaluation.json").write_text(Evaluation(images=images).model_dump_json())
    describe(profile, "pgo", Quality(20, 5, 25.0, "poor", (), exact=True))
    driven: list[Json] = [
        {"package": "org.example.mail", "actions": 30, "ended": "time"},
        {
            "package": "org.example.maps",
            "actions": 9,
            "ended": "actions",
            "states": 4,
            "transitions": 5,
            "tried": 6,
            "offered": 7,
            "crashes": ["at its start: maps has stopped"],
        },
    ]
    known = {**COLLECTION, "actions": [], "screens": driven}
    (profile / "collection.json").write_text(json.dumps(known))
    params: dict[str, Json] = {**PARAMS, "images": [{"name": "a"}, {"name": "b"}], "goals": []}
    journal = Journal(room.root)
    journal.write("run", program="p", seed=1, tools={}, versions={}, store="s", cores=2)
    journal.close()
    given = {"evaluation": measured, "profiles__0__profile": profile}
    context = room.context("report", {**params, "collections": []}, **given)
    report.BODY.run(replace(context, journal=room.root / "journal.jsonl"))
    details = read_report(context.output).profile
    assert details is not None
    assert details.details["org.example.mail"] == "30 actions, time is up"
    assert details.details["org.example.maps"] == (
        "9 actions, 4 states, 5 transitions, 6 of 7 actions of these states tried, "
        "crash at its start: maps has stopped"
    )
    assert "actions run" not in details.details
