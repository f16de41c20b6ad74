from __future__ import annotations

import sys
from pathlib import Path

import pytest

import mepof
from mepof.toolchain.requirements import (
    amount,
    engine,
    file_at,
    free_space,
    kernel_sources,
    kvm,
    python_packages,
    static_program,
    writable,
)

GIB = 1 << 30


def test_a_program_with_an_interpreter_cannot_serve_in_the_guest() -> None:
    # Python itself, wherever it is, is linked dynamically.
    finding = static_program(Path(sys.executable).resolve(), "shell", "busybox-static")
    assert (finding.state, finding.found) == ("broken", "not static")
    assert finding.remedy == "apt-get install busybox-static"


def test_a_script_in_place_of_a_program_is_broken(tmp_path: Path) -> None:
    script = tmp_path / "busybox"
    script.write_text("#!/bin/sh\n")
    assert static_program(script, "shell", "busybox-static").state == "broken"


def test_a_program_that_is_not_there_is_missing(tmp_path: Path) -> None:
    assert static_program(tmp_path / "busybox", "shell", "busybox-static").state == "missing"


def test_a_header_is_there_or_its_package_is_named(tmp_path: Path) -> None:
    assert file_at(tmp_path / "gelf.h", "libelf", "", "apt-get install libelf-dev").remedy == (
        "apt-get install libelf-dev"
    )
    (tmp_path / "gelf.h").touch()
    assert file_at(tmp_path / "gelf.h", "libelf", "", "apt-get install libelf-dev").state == "ok"
    assert file_at(None, "libelf", "", "apt-get install libelf-dev").state == "missing"


def test_kernel_sources_are_listed_by_package(tmp_path: Path) -> None:
    assert kernel_sources(tmp_path).state == "missing"
    (tmp_path / "linux-source-6.12.tar.xz").touch()
    (tmp_path / "linux-source-6.1.tar.xz").touch()
    assert kernel_sources(tmp_path).found == "linux-source-6.1, linux-source-6.12"


def test_kvm_that_is_not_there_stops_nothing(tmp_path: Path) -> None:
    finding = kvm(tmp_path / "kvm")
    assert (finding.state, finding.remedy, finding.stops) == ("missing", None, False)


def test_too_little_space_stops_and_is_reported_in_gib() -> None:
    finding = amount("disk", "builds", 3 * GIB // 2, 5 * GIB, required=True)
    assert (finding.state, finding.found, finding.needed) == ("too little", "1.5 GiB", "≥ 5 GiB")
    assert finding.stops
    assert finding.remedy == "free some, or choose another store with MEPOF_STORE"


def test_a_store_that_cannot_be_written_stops(tmp_path: Path) -> None:
    assert writable(tmp_path / "not" / "yet").state == "ok"
    (tmp_path / "file").touch()
    finding = writable(tmp_path / "file")
    assert (finding.state, finding.found) == ("broken", "Not a directory")
    assert finding.stops


def test_space_is_looked_up_where_the_store_will_be(tmp_path: Path) -> None:
    assert free_space(tmp_path / "not" / "yet") > 0
    (tmp_path / "file").touch()
    assert free_space(tmp_path / "file") > 0


def test_python_packages_are_compared_with_what_mepof_requires() -> None:
    found = {
        finding.name: finding
        for finding in python_packages(
            ["rich>=1.0", "jinja2>=999.0", "no-such-package>=1.0", 'ruff>=0.5; extra == "dev"']
        )
    }
    assert found["rich"].state == "ok"
    assert found["jinja2"].state == "too old"
    assert found["no-such-package"].state == "missing"
    assert set(found) == {"python", "rich", "jinja2", "no-such-package"}


def test_the_engine_has_to_be_of_the_same_release(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (engine().state, engine().found) == ("ok", mepof.__version__)
    monkeypatch.setattr(mepof, "__version__", "999.0")
    assert (engine().state, engine().remedy) == ("broken", "make setup")


def test_an_engine_that_was_not_built_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mepof._engine", None)
    assert (engine().state, engine().found, engine().stops) == ("missing", None, True)
