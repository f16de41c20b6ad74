"""An algorithm of another distribution: ``examples/plugin``, built, installed and found."""

from __future__ import annotations

import json
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from writers.mini_kernel import write_tools, write_tree
from writers.outside_algorithm import EXAMPLE, Installed, install


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("site"))


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program with the algorithm, for a miniature kernel and toolchain."""
    monkeypatch.setenv("PATH", f"{write_tools(tmp_path / 'tools')}:/usr/bin:/bin")
    monkeypatch.setenv("MEPOF_STORE", str(tmp_path / "store"))
    tree = write_tree(tmp_path / "tree")
    path = tmp_path / "hot.g4"
    path.write_text(f"opt {tree} hot-pgo rand kbench O2.\neval plain.img;opt.img syscall.\n")
    return path


def test_the_wheel_has_the_algorithm_and_not_its_tests(installed: Installed) -> None:
    (metadata,) = installed.site.glob("*.dist-info")
    distribution = Distribution.at(metadata)
    assert distribution.metadata["Name"] == "mepof-hot-pgo"
    (point,) = distribution.entry_points
    assert (point.group, point.name) == ("mepof.algorithm", "hot-pgo")
    assert [path.name for path in installed.site.glob("*.py")] == ["mepof_hot_pgo.py"]


def test_a_program_names_it_and_the_plan_trains_and_builds_with_it(
    installed: Installed, program: Path
) -> None:
    assert installed.mepof("g4", "check", program) == ""
    steps = json.loads(installed.mepof("g4", "plan", program))["steps"]
    params = {step["id"]: step["params"] for step in steps}
    assert params["opt/instrument"]["instrumented"]["algorithm"] == "hot-pgo"
    assert params["opt/profile"]["algorithm"] == "hot-pgo"
    assert params["opt/build"]["uses"] == ["hot-pgo"]


def test_a_dry_run_knows_the_steps(installed: Installed, program: Path) -> None:
    explained = json.loads(installed.mepof("run", "--dry-run", "--json", program))
    assert {e["step"] for e in explained} >= {"opt/collect", "opt/profile", "opt/build", "report"}


def test_without_the_distribution_nothing_is_known_of_it(tmp_path: Path, program: Path) -> None:
    done = Installed(tmp_path / "nothing").python("-m", "mepof.cli.main", "g4", "check", program)
    assert done.returncode == 2
    assert "unknown algorithm `hot-pgo`" in done.stderr


def test_its_own_tests_pass(installed: Installed) -> None:
    done = installed.python("-m", "pytest", "-q", "-p", "no:cacheprovider", EXAMPLE)
    assert done.returncode == 0, done.stdout
