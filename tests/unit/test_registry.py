"""Variants found by name: a file each, and entry points from outside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import invalidate_caches
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Protocol

import pytest

from mepof import registry
from mepof.described import Described, Named
from mepof.errors import EnvironmentLack, InputError
from mepof.registry import DescribedRegistry, Registry

SHARED = """\
OTHER = 1
class Class:
    size = 1
    def grow(self): ...
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package with two variants and a module that is none."""
    root = tmp_path / "trial_variants"
    root.mkdir()
    (root / "__init__.py").touch()
    (root / "two_words.py").write_text("VARIANT = 'two'\n")
    (root / "alpha.py").write_text("VARIANT = 'one'\n")
    (root / "shared.py").write_text(SHARED)
    monkeypatch.syspath_prepend(tmp_path)
    invalidate_caches()
    yield "trial_variants"
    registry._names.cache_clear()


def test_a_file_is_a_variant_by_its_name(package: str) -> None:
    variants: Registry[str] = Registry(package, "VARIANT", "thing")
    assert variants.all() == {"alpha": "one", "two-words": "two"}
    assert variants.names() == ("alpha", "two-words")
    assert variants.get("two-words") == "two"


@pytest.mark.parametrize(
    ("name", "help_"), [("alhpa", "did you mean `alpha`?"), ("zzz", "known: alpha, two-words")]
)
def test_an_unknown_name_is_an_error_with_a_suggestion(package: str, name: str, help_: str) -> None:
    with pytest.raises(InputError, match=f"unknown thing `{name}`") as caught:
        Registry[str](package, "VARIANT", "thing").get(name)
    assert caught.value.remedy == help_


def test_another_distribution_adds_one_by_an_entry_point(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def points(group: str) -> list[EntryPoint]:
        assert group == package
        return [EntryPoint(name, "trial_variants.shared:OTHER", group) for name in ("more", "less")]

    monkeypatch.setattr(registry, "entry_points", points)
    things = Registry[object](package, "VARIANT", "thing")
    assert things.get("less") == 1
    assert things.names() == ("alpha", "two-words", "less", "more")


def test_one_of_another_distribution_is_identified_by_the_content_of_its_module(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "trial_single.py"
    module.write_text("THING = 1\n")
    (tmp_path / "beside").touch()
    points = [EntryPoint("outside", "trial_single:THING", package)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    things: Registry[object] = Registry(package, "VARIANT", "thing")
    before = things.identity("alpha", "outside")
    assert list(before) == ["thing outside"]
    (tmp_path / "beside").write_text("changed")
    assert things.identity("outside") == before
    module.write_text("THING = 2\n")
    assert things.identity("outside") != before
    assert things.identity("alpha", "unknown") == {}


class Sized(Protocol):
    """What the things here must be."""

    size: int

    def grow(self) -> None:
        """Get larger."""


UPDATE = "update or remove the package that adds it"


@pytest.mark.parametrize(
    ("name", "value", "why", "remedy"),
    [
        (
            "outside",
            "trial_variants.gone:THING",
            "cannot be loaded: No module named 'trial_variants.gone'",
            UPDATE,
        ),
        ("outside", "trial_variants.shared:OTHER", "does not have grow, size", UPDATE),
        (
            "outside",
            "trial_variants.shared:Class",
            "is a class",
            "let its entry point name an instance of the class",
        ),
        (
            "alpha",
            "trial_variants.shared:OTHER",
            "has the name of one of mepof's own",
            "give its entry point another name, or remove the package that adds it",
        ),
    ],
)
def test_one_of_another_distribution_that_cannot_be_used_stops_only_what_names_it(
    package: str, monkeypatch: pytest.MonkeyPatch, name: str, value: str, why: str, remedy: str
) -> None:
    points = [EntryPoint(name, value, package)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    things = Registry[object](package, "VARIANT", "thing", Sized)
    with pytest.raises(EnvironmentLack) as caught:
        things.get(name)
    assert caught.value.message == f"the thing `{name}`, {value}, {why}"
    assert caught.value.remedy == remedy
    assert things.all() == {"alpha": "one", "two-words": "two"}
    assert things.get("two-words") == "two"


@pytest.mark.parametrize("text", ["raise SystemExit(0)", "raise RuntimeError", "THING = Odd()"])
def test_one_that_exits_or_answers_nothing_stops_only_what_names_it(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    odd = "class Odd:\n    def __getattr__(self, name):\n        raise RuntimeError(name)\n\n"
    (tmp_path / "odd_variants.py").write_text(f"{odd}{text}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "odd_variants", raising=False)
    points = [EntryPoint("outside", "odd_variants:THING", package)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    things = Registry[object](package, "VARIANT", "thing", Sized)
    assert things.all() == {"alpha": "one", "two-words": "two"}
    with pytest.raises(EnvironmentLack, match="cannot be loaded"):
        things.get("outside")


def test_of_two_by_one_name_none_is_taken(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = ("trial_variants.shared:OTHER", "trial_variants.alpha:VARIANT")
    points = [EntryPoint("outside", value, package) for value in values]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    things = Registry[object](package, "VARIANT", "thing")
    assert "outside" not in things.all()
    with pytest.raises(EnvironmentLack, match="has the name of another one"):
        things.get("outside")


class Thing(Described):
    size: int


class NamedThing(Thing, Named):
    pass


def test_a_toml_file_is_a_variant_by_its_stem(tmp_path: Path) -> None:
    (tmp_path / "two-words.toml").write_text("size = 2\n")
    (tmp_path / "alpha.toml").write_text("size = 1\n")
    (tmp_path / "README.md").touch()
    things = DescribedRegistry(tmp_path, Thing, "thing")
    assert things.names() == ("alpha", "two-words")
    assert things.get("two-words") == Thing(size=2)
    assert DescribedRegistry(tmp_path, NamedThing, "thing").get("alpha").name == "alpha"


def test_an_unknown_name_is_an_error_that_lists_the_known(tmp_path: Path) -> None:
    (tmp_path / "alpha.toml").write_text("size = 1\n")
    inside, outside = tmp_path / "inside", tmp_path / "alpha.toml"
    inside.mkdir()
    (inside / "beta.toml").write_text("size = 2\n")
    for name in ("gamma", "../alpha", str(outside)):
        with pytest.raises(InputError) as raised:
            DescribedRegistry(inside, Thing, "thing").get(name)
        assert raised.value.message == f"unknown thing `{name}`"
        assert raised.value.remedy == "known: beta"


def test_a_variant_can_be_a_file_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("size = 3\n")
    things = DescribedRegistry(tmp_path / "none", NamedThing, "thing", or_path=True)
    assert things.get(str(path)) == NamedThing(name="mine", size=3)
    with pytest.raises(InputError, match=r"or name a TOML file"):
        things.get("mine")
