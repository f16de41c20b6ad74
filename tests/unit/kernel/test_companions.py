"""Programs that only some kernels need: hidden from the others, and missed by those."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from writers.fragments import merged

from mepof.kernel import companions
from mepof.process import look_again

HIDDEN = {"PAHOLE": "not-installed", "RUSTC": "not-installed", "BINDGEN": "not-installed"}
RUST = {"RUSTC": "rustc", "BINDGEN": "bindgen"}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where programs are found."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    look_again()
    yield directory
    look_again()


def install(directory: Path, name: str, says: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n/bin/cat <<'E'\n{says}\nE\n")
    (directory / name).chmod(0o755)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("# base: allnoconfig\nCONFIG_NET=y\n", HIDDEN),
        ("# base: allnoconfig\nCONFIG_RUST=y\n", HIDDEN | RUST),
        ("# base: allnoconfig\nCONFIG_DEBUG_INFO_BTF=y\n", HIDDEN | {"PAHOLE": "pahole"}),
        ("CONFIG_NET=y\n", {"PAHOLE": "pahole", **RUST}),
        ("# CONFIG_RUST is not set\n", HIDDEN | {"PAHOLE": "pahole"}),
    ],
)
def test_programs_that_a_kernel_does_not_need_are_hidden_from_it(
    tmp_path: Path, text: str, given: dict[str, str]
) -> None:
    assert companions.variables(merged(tmp_path, text)) == given


def test_a_kernel_is_known_by_the_programs_that_it_may_need(tmp_path: Path, programs: Path) -> None:
    install(programs, "rustc", "rustc 1.96.0 (ac68faa20 2026-05-25)")
    install(programs, "bindgen", "bindgen 0.73.2")
    found = companions.identity(merged(tmp_path, "# base: allnoconfig\nCONFIG_RUST=y\n"))
    assert found.keys() == {"rustc", "bindgen"}
    assert found["rustc"].startswith("rustc 1.96.0 (ac68faa20 2026-05-25), ")
    assert companions.identity(merged(tmp_path, "# base: allnoconfig\n")) == {}


def test_what_is_not_installed_is_missed_by_its_option(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(programs))
    ((message, remedy),) = companions.lacking({"CONFIG_RUST=y", "CONFIG_NET=y"})
    assert message == "CONFIG_RUST needs rustc and bindgen, which are not installed"
    assert "cargo install --locked bindgen-cli" in remedy
    install(programs, "rustc", "rustc 1.96.0")
    ((message, _),) = companions.lacking({"CONFIG_RUST=y"})
    assert message == "CONFIG_RUST needs bindgen, which is not installed"
    assert list(companions.lacking({"CONFIG_NET=y"})) == []


def test_a_program_that_does_not_run_is_missed_by_its_option_alone(
    tmp_path: Path, programs: Path
) -> None:
    # That of rustup, where no toolchain is chosen.
    install(programs, "bindgen", "bindgen 0.73.2")
    (programs / "rustc").write_text("#!/bin/sh\necho error: no default is configured\nexit 1\n")
    (programs / "rustc").chmod(0o755)
    may_need_it = merged(tmp_path, "# CONFIG_DEBUG_INFO_BTF is not set\n")
    assert companions.identity(may_need_it).keys() == {"bindgen"}
    ((message, remedy),) = companions.lacking({"CONFIG_RUST=y"})
    assert message == ("CONFIG_RUST: rustc failed with status 1: error: no default is configured")
    assert remedy
    assert list(companions.unsuitable({"CONFIG_RUST=y"}, ["make"])) == []
    assert list(companions.lacking({"CONFIG_NET=y"})) == []


def test_the_kernels_own_reason_against_the_rust_that_is_installed_is_given(
    programs: Path,
) -> None:
    install(programs, "rustc", "rustc 1.63.0")
    install(programs, "bindgen", "bindgen 0.60.1")
    complaint = (
        "make: Entering directory\n***\n*** Rust compiler 'rustc' is too old.\n"
        "***   Your version:    1.63.0\n***   Minimum version: 1.78.0\n***\n***\n"
        "*** Please see Documentation/rust/quick-start.rst for details\n***"
    )
    install(programs, "make", complaint)
    ((message, _),) = companions.unsuitable({"CONFIG_RUST=y"}, ["make", "-C", "tree"])
    assert message == (
        "CONFIG_RUST: Rust compiler 'rustc' is too old. Your version: 1.63.0 "
        "Minimum version: 1.78.0"
    )
    install(programs, "make", "Rust is available!")
    assert list(companions.unsuitable({"CONFIG_RUST=y"}, ["make"])) == []
    assert list(companions.unsuitable({"CONFIG_NET=y"}, ["make"])) == []
