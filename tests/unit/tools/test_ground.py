"""The files that a new machine meets first: the Makefile, the gate, the pins, the example."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import mepof
from mepof import _engine
from mepof.executor.programs import plan_of
from mepof.g4 import Source, format_program, parse

ROOT = Path(__file__).parents[3]
PIN = re.compile(r"^([a-z0-9-]+)==\S+ \\$", re.M)


def recipe(target: str) -> list[str]:
    """What make would run for a target."""
    done = subprocess.run(
        ["make", "--dry-run", target],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_lint_checks_types_and_allows_no_warning() -> None:
    lines = recipe("lint")
    assert lines[0] == "tools/setup"
    assert any("mypy --strict" in line for line in lines)
    assert any("cargo clippy" in line and "-D warnings" in line for line in lines)


def test_the_tests_come_after_setup_and_have_the_last_word() -> None:
    lines = recipe("test")
    assert lines[0] == "tools/setup"
    left_out = ("arm64", "adbd", "gate", "gcc", "rounds", "examples", "patient")
    assert lines[-1] == f"tools/run-tests -m 'not ({' or '.join(left_out)})'"
    with_tests = {
        file.relative_to(ROOT / "tests").parts[0] for file in (ROOT / "tests").rglob("test_*.py")
    }
    assert with_tests == {"unit", "boot"}


def test_another_target_leaves_no_test_out() -> None:
    assert recipe("test-all")[-1].strip() == "tools/run-tests"


def test_the_demo_runs_the_example() -> None:
    assert recipe("demo") == [
        "tools/setup",
        ".venv/bin/mepof run examples/quickstart.g4 --out out/demo",
    ]


def test_cleaning_leaves_the_store_and_other_results_alone() -> None:
    removed = next(line for line in recipe("clean") if line.startswith("rm "))
    assert removed.split()[2:5] == ["out/demo", "build", "target"]
    assert "cache/mepof" not in removed


@pytest.mark.parametrize("script", [".ci/run", "tools/setup", "tools/run-tests"])
def test_scripts_can_be_run_and_parsed(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    subprocess.run(["bash", "-n", ROOT / script], check=True)


def test_every_pin_has_hashes_and_no_host() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    for block in re.split(r"\n(?=[a-z])", lock)[1:]:
        assert PIN.match(block), block.splitlines()[0]
        assert "--hash=sha256:" in block
    assert "://" not in lock


def test_the_lock_covers_what_the_project_asks_for() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    wanted = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["dev"],
        *project["build-system"]["requires"],
    ]
    pinned = set(PIN.findall((ROOT / "requirements.lock").read_text()))
    assert {re.split(r"[<>=!~\[;]", name)[0] for name in wanted} <= pinned


def test_all_parts_have_one_version_and_one_minimal_rust() -> None:
    with (ROOT / "Cargo.toml").open("rb") as file:
        package = tomllib.load(file)["workspace"]["package"]
    assert package["version"] == mepof.__version__ == _engine.__version__
    setup = (ROOT / "tools/setup").read_text()
    assert f"MIN_RUST={package['rust-version']}\n" in setup


def test_the_installed_package_brings_what_is_native() -> None:
    # The build backend takes what is inside of the package, so `native` is linked into it.
    inside = ROOT / "src/mepof/native"
    assert inside.is_symlink()
    assert inside.resolve() == ROOT / "native"


def test_the_quickstart_makes_an_optimised_and_a_plain_image() -> None:
    plan = plan_of(Source.read(ROOT / "examples/quickstart.g4"))
    assert [r.name for r in plan.results if r.kind == "image"] == ["opt", "plain"]


def test_the_quickstart_is_formatted() -> None:
    source = Source.read(ROOT / "examples/quickstart.g4")
    assert format_program(parse(source).program) == source.text


@pytest.mark.parametrize(
    "path",
    [*ROOT.glob("examples/*.g4"), *ROOT.glob("bench/*/*.g4")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_every_published_program_compiles(path: Path) -> None:
    source = Source.read(path)
    assert plan_of(source).program == source.text
