"""Variants found by name: a file each, and entry points from outside."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import invalidate_caches
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from mepof import registry
from mepof.errors import InputError
from mepof.registry import Registry


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package with two variants and a module that is none."""
    root = tmp_path / "trial_variants"
    root.mkdir()
    (root / "__init__.py").touch()
    (root / "two_words.py").write_text("VARIANT = 'two'\n")
    (root / "alpha.py").write_text("VARIANT = 'one'\n")
    (root / "shared.py").write_text("OTHER = 1\n")
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
        return [EntryPoint("outside", "trial_variants.shared:OTHER", group)]

    monkeypatch.setattr(registry, "entry_points", points)
    assert Registry[object](package, "VARIANT", "thing").get("outside") == 1
