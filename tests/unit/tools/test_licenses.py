"""Every file has a license, and metadata names the same (docs/decisions/0020-licenses.md)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
MANIFESTS = [*ROOT.glob("crates/*/Cargo.toml"), ROOT / "fuzz/Cargo.toml"]


def toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


ANNOTATIONS: list[Mapping[str, Any]] = toml(ROOT / "REUSE.toml")["annotations"]
LICENSES = [entry["SPDX-License-Identifier"] for entry in ANNOTATIONS]


def test_every_file_has_a_license() -> None:
    assert (ANNOTATIONS[0]["path"], LICENSES[0]) == ("**", "MIT")
    assert all(entry["SPDX-FileCopyrightText"] for entry in ANNOTATIONS)


def test_what_goes_into_kernels_has_the_kernels_license() -> None:
    (entry,) = (entry for entry in ANNOTATIONS if entry["path"] == "native/overlays/**")
    assert entry["SPDX-License-Identifier"] == "GPL-2.0-only"
    # Their own comments say the same in the kernel's older spelling.
    assert entry["precedence"] == "override"


def test_each_license_has_its_text_and_each_text_is_of_a_license() -> None:
    assert {path.stem for path in (ROOT / "LICENSES").iterdir()} == set(LICENSES)
    summary = (ROOT / "LICENSE").read_text()
    assert all(name in summary for name in LICENSES)


def test_the_package_names_all_licenses() -> None:
    assert toml(ROOT / "pyproject.toml")["project"]["license"] == " AND ".join(LICENSES)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.parent.name)
def test_a_crate_names_its_license(path: Path) -> None:
    workspace = toml(ROOT / "Cargo.toml")["workspace"]["package"]
    given = toml(path)["package"]["license"]
    assert (workspace["license"] if given == {"workspace": True} else given) == LICENSES[0]
