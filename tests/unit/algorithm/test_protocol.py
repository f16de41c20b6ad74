"""Stacks of algorithms, and what they add to a build together."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.algorithm.protocol import ALGORITHMS, BuildAddition, Round, Use, parts
from mepof.errors import InputError
from mepof.kernel import overlay
from mepof.kernel.build_spec import PROFILES, FileFlags
from mepof.toolchain.clang import Clang
from mepof.toolchain.gcc import Gcc


def test_a_stack_has_its_parts_in_the_order_of_its_name() -> None:
    assert parts("pgo") == (ALGORITHMS.get("pgo"),)
    assert parts("autofdo+propeller") == (ALGORITHMS.get("autofdo"), ALGORITHMS.get("propeller"))


def test_an_unknown_algorithm_is_an_error_in_a_stack_too() -> None:
    for name in ("pgoo", "pgoo+propeller", "propeller+pgoo"):
        with pytest.raises(InputError, match="unknown algorithm `pgoo`"):
            parts(name)


def test_two_additions_are_one_with_shared_overlays_and_lines_once() -> None:
    first = BuildAddition(
        overlays=("text-sections", "objtool-cold"),
        config_lines=("CONFIG_A=y",),
        cflags=("-a",),
        variables={"A": "1", "BOTH": "first"},
        profiles={"a": Path("/a")},
        opt_out=("-fno-a",),
    )
    second = BuildAddition(
        overlays=("text-sections", "propeller"),
        config_lines=("CONFIG_A=y", "CONFIG_B=y"),
        cflags=("-a",),
        ldflags=("--b",),
        variables={"BOTH": "second"},
        selected=(FileFlags(("b.o",), ("-b",)),),
        profiles={"b": Path("/b")},
        opt_out=("-fno-b",),
    )
    assert first + second == BuildAddition(
        overlays=("text-sections", "objtool-cold", "propeller"),
        config_lines=("CONFIG_A=y", "CONFIG_B=y"),
        # Of flags, the order and the number may matter.
        cflags=("-a", "-a"),
        ldflags=("--b",),
        variables={"A": "1", "BOTH": "second"},
        selected=(FileFlags(("b.o",), ("-b",)),),
        profiles={"a": Path("/a"), "b": Path("/b")},
        opt_out=("-fno-a", "-fno-b"),
    )
    assert first + BuildAddition() == first == BuildAddition() + first


@pytest.mark.parametrize("name", ALGORITHMS.names())
def test_flags_without_a_profile_name_none(name: str) -> None:
    algorithm = ALGORITHMS.get(name)
    gcc = algorithm.requires & Gcc("-12").capabilities
    used = algorithm.use(Path("/p"), Use(Gcc("") if gcc else Clang("-22"), True))
    assert PROFILES in str((used.cflags, used.ldflags, used.variables, used.selected)) or (
        used.rewriting is not None
    )
    alone = used.without_profiles()
    assert PROFILES not in str(alone)
    assert (alone.profiles, alone.rewriting, alone.overlays) == ({}, None, used.overlays)


@pytest.mark.parametrize("name", ALGORITHMS.names())
def test_what_an_algorithm_adds_is_there(name: str) -> None:
    algorithm = ALGORITHMS.get(name)
    has = algorithm.requires & Gcc("-12").capabilities
    toolchain = Gcc("") if has else Clang("-22")
    used = algorithm.use(Path("/p"), Use(toolchain, True))
    for addition in (algorithm.instrument(toolchain, Round()), used):
        for each in addition.overlays:
            assert overlay.load(each).name == each
    # Every profile that flags name is laid where they look, and under a name of its own.
    selected = [flag for each in used.selected for flag in each.cflags]
    named = " ".join((*used.cflags, *used.ldflags, *used.variables.values(), *selected))
    # What rewrites the finished kernel takes its profile as it is.
    assert bool(used.profiles) == (used.rewriting is None)
    for file, path in used.profiles.items():
        assert file in algorithm.profile_names
        assert path == Path("/p") / file
        assert f"{PROFILES}/{file}" in named
    assert named.count(f"{PROFILES}/") == sum(named.count(f"{PROFILES}/{f}") for f in used.profiles)
    # A file can do without the profile: by flags, or because it is not given any.
    opts_out = used.opt_out or any(each.but is not None for each in used.selected)
    assert bool(opts_out) == (used.rewriting is None)


def test_layouts_and_checksums_name_no_functions() -> None:
    nameless = {name for name in ALGORITHMS.names() if not ALGORITHMS.get(name).names_functions}
    assert nameless == {"bolt", "gcc-pgo", "propeller", "propeller-paths"}


def test_no_two_algorithms_call_their_profiles_the_same() -> None:
    names = [name for a in ALGORITHMS.all().values() for name in a.profile_names]
    assert len(set(names)) == len(names)
