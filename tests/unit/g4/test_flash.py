"""``flash``: an image that a phone starts from then on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mepof.plan.model import StepInput

from .planning import plan
from .reading import headlines

OPT = "set device phone. opt debian:linux-source-6.12 pgo rand kbench O2. "


def test_an_image_is_flashed_after_what_the_program_finds_out() -> None:
    made = plan(OPT + "check plain.img;opt.img. flash opt.img.")
    step = made.step("flash")
    given = {k: v.step for k, v in step.inputs.items() if isinstance(v, StepInput)}
    assert given == {"kernel": "opt/build", "guest": "guest", "after.0": "check"}
    assert (step.params["image"], step.params["device"]) == ("opt", "phone")
    assert [r.kind for r in made.results if r.name == "flash"] == ["flash"]


def test_a_device_that_cannot_be_flashed_is_an_error() -> None:
    (said,) = headlines("opt debian:linux-source-6.12 pgo rand kbench O2.\nflash opt.img.")
    assert said == "p.g4:2:1: error: the device `qemu` cannot be flashed"


def test_only_images_are_flashed() -> None:
    (said,) = headlines("set device phone. profile /src pgo rand.\nflash profile.")
    assert said == "p.g4:2:7: error: `profile` is a profile, not an image"


def test_nothing_is_flashed_without_the_option(tmp_path: Path) -> None:
    program = tmp_path / "p.g4"
    program.write_text("set device phone. build debian:linux-source-6.12. flash build.img.")
    main = "from mepof.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", main, "run", program, "--store", tmp_path / "store"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 2
    assert "the program flashes a phone\n  help: run it by `mepof run --flash`" in done.stderr
    assert not (tmp_path / "out").exists()
