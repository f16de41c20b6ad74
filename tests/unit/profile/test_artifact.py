"""The files of a profile artifact."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.errors import InputError, WorkError
from mepof.kernel.description import Origin
from mepof.profile import artifact
from mepof.profile.quality import Quality
from mepof.scenario.collection import Collection

QUALITY = Quality(100, 5, 5.0, "poor", ("only 5 functions ran",))
BUILD = Origin(source="linux", config="c", compiler="22.1.8", flags="f")


def test_what_is_known_of_a_profile_is_read_back(tmp_path: Path) -> None:
    known = artifact.ProfileDescription(algorithm="pgo", build=BUILD, quality=QUALITY)
    known.write(tmp_path)
    assert artifact.ProfileDescription.read(tmp_path) == known


def test_the_build_of_a_foreign_profile_is_not_known(tmp_path: Path) -> None:
    assert artifact.ProfileDescription.find(tmp_path) is None


def test_the_files_of_a_profile_are_all_but_its_descriptions(tmp_path: Path) -> None:
    for name in ("kernel.ld_profile", "kernel.cc_profile"):
        (tmp_path / name).touch()
    (tmp_path / "older").mkdir()
    Collection.of("rand", [], [], 1, "6.12").write(tmp_path)
    artifact.ProfileDescription(algorithm="propeller", build=None, quality=QUALITY).write(tmp_path)
    assert artifact.profile_files(tmp_path) == (
        tmp_path / "kernel.cc_profile",
        tmp_path / "kernel.ld_profile",
    )


@pytest.mark.parametrize("names", [[], ["only.json"]])
def test_a_directory_without_files_of_a_profile_holds_none(
    tmp_path: Path, names: list[str]
) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(InputError, match="does not contain a profile"):
        artifact.profile_files(tmp_path)


def test_an_artifact_is_a_profiles_directory_as_it_is(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    with pytest.raises(InputError, match=r"given does not contain kernel\.afdo"):
        artifact.profile_directory(given, ["kernel.afdo"], tmp_path)
    (given / "kernel.afdo").touch()
    assert artifact.profile_directory(given, ["kernel.afdo"], tmp_path) == given
    with pytest.raises(InputError, match=r"given does not contain kernel\.cc_profile"):
        artifact.profile_directory(given, ["kernel.afdo", "kernel.cc_profile"], tmp_path)


def test_a_single_file_is_not_a_profile_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    with pytest.raises(InputError, match="one is only part of the profile, which consists of a, b"):
        artifact.profile_directory(tmp_path / "one", ["a", "b"], tmp_path)


def test_a_file_of_the_users_is_laid_into_a_directory_of_its_own(tmp_path: Path) -> None:
    work = tmp_path / "work"
    found = []
    for name in ("a profile", "another"):
        (tmp_path / name).write_text(name)
        found.append(artifact.profile_directory(tmp_path / name, ["kernel.afdo"], work))
    assert [(path / "kernel.afdo").read_text() for path in found] == ["a profile", "another"]
    # A step that was interrupted comes by again.
    assert artifact.profile_directory(tmp_path / "another", ["kernel.afdo"], work) == found[1]


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"algorithm": "pgo", "reasons": []}'])
def test_a_directory_without_a_description_is_not_a_profile(
    tmp_path: Path, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "profile.json").write_text(text)
    with pytest.raises(WorkError, match=r"profile\.json (cannot be read|is not valid)"):
        artifact.ProfileDescription.read(tmp_path)
