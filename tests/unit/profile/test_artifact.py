"""The files of a profile artifact."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.algorithm.protocol import Quality
from mepof.errors import InputError, WorkError
from mepof.profile import artifact

QUALITY = Quality(100, 5, 5.0, "poor", ("only 5 functions ran",))


def test_what_is_known_of_a_profile_is_read_back(tmp_path: Path) -> None:
    artifact.describe(tmp_path, "pgo", QUALITY)
    assert artifact.description(tmp_path) == ("pgo", QUALITY)


def test_the_profile_of_an_artifact_is_the_file_beside_its_descriptions(tmp_path: Path) -> None:
    (tmp_path / "kernel.profdata").touch()
    (tmp_path / "collection.json").write_text('{"scenario": "rand"}')
    artifact.describe(tmp_path, "pgo", QUALITY)
    assert artifact.profile_file(tmp_path) == tmp_path / "kernel.profdata"
    assert artifact.profile_file(tmp_path / "kernel.profdata") == tmp_path / "kernel.profdata"
    assert artifact.collection(tmp_path) == {"scenario": "rand"}


@pytest.mark.parametrize("names", [[], ["a", "b"], ["only.json"]])
def test_a_directory_without_just_one_profile_holds_none(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(InputError, match="holds no profile"):
        artifact.profile_file(tmp_path)


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"algorithm": "pgo", "reasons": []}'])
def test_a_directory_without_a_description_is_no_profile(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "profile.json").write_text(text)
    with pytest.raises(WorkError, match="does not describe a profile"):
        artifact.description(tmp_path)


def test_a_merged_profile_has_no_collection(tmp_path: Path) -> None:
    assert artifact.collection(tmp_path) is None
