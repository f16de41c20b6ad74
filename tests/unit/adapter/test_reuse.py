"""Programs that build with profiles that are there, in place of training."""

from __future__ import annotations

from pathlib import Path

from mepof.adapter.reuse import with_profiles
from mepof.executor.programs import compiled
from mepof.g4 import Source

PROGRAM = """set config slim.
set name one.
opt /src autofdo rand kbench O2.
set base one.
set hotness one.
set name two.
opt /src autofdo rand kbench O3.
eval plain.img;two.img pipe.
"""


def test_training_becomes_a_rebuild_with_the_profile_that_is_there() -> None:
    text = with_profiles(PROGRAM, {"one": Path("/p/one.afdo"), "two": Path("/p/two.afdo")})
    assert "recomp /src /p/one.afdo O2." in text
    assert "recomp /src /p/two.afdo O3." in text
    assert "rand" not in text


def test_what_only_training_uses_is_left_out() -> None:
    # The names that they are given no longer have a profile.
    text = with_profiles(PROGRAM, {"one": Path("/p/one.afdo"), "two": Path("/p/two.afdo")})
    assert "set base" not in text and "set hotness" not in text
    kinds = {step.kind for step in compiled(Source("program", text)).steps}
    assert "profile-collect" not in kinds and "kernel-build" in kinds
