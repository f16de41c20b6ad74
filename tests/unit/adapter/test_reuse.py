"""Programs that build with profiles that are there, in place of training."""

from __future__ import annotations

from pathlib import Path

from mepof.adapter.reuse import counting, trained, with_profiles
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


COUNTED = """set instrument mm,16M.
set scout off.
opt /src pgo rand kbench O2.
set base opt.
opt /src pgo rand kbench O3.
eval plain.img;opt2.img pipe.
"""


def test_files_that_changed_are_counted_again_on_top_of_the_profile_that_is_there() -> None:
    profiles = {name: Path(f"/p/{name}.profdata") for name in ("opt", "opt2")}
    text = with_profiles(COUNTED, profiles, {"opt2": ("fs/read.c", "mm/swap.c")})
    assert (
        text
        == """set scout off.
set name opt.
recomp /src /p/opt.profdata O2.
set name opt2.
set base /p/opt2.profdata.
set hotness /p/opt2.profdata.
set decay 0.
set instrument fs/read.c,mm/swap.c.
opt /src pgo rand kbench O3.
eval plain.img;opt2.img pipe.
"""
    )
    plan = compiled(Source("program", text))
    assert plan.step("opt2/selected").params["places"] == ["fs/read.c", "mm/swap.c"]
    assert plan.step("opt2/renew").params["part"] is True
    # The counts that are there say what runs.
    assert not any(step.id.endswith("/scout") for step in plan.steps)


def test_only_what_is_counted_in_one_round_can_be_counted_again_in_part() -> None:
    for algorithm, can in (("pgo", True), ("cspgo", False), ("autofdo", False)):
        results = trained(f"opt /src {algorithm} rand kbench.")
        assert results is not None
        assert counting(results) == (frozenset({"opt"}) if can else frozenset())
