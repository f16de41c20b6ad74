"""The kernels that the boot tests boot: those of the quickstart, from the user's store.

A cold store builds the plain kernel first, and twice the files that run. `make demo` and these
tests share them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from mepof.app.apps import lacked, load_app
from mepof.cli.progress import LogDisplay
from mepof.device import agent
from mepof.device.initramfs import Entry, archive, tree
from mepof.device.protocol import INITRAMFS, Session
from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.executor.protocol import Finished
from mepof.g4 import Source
from mepof.kernel.overlay import native_directory
from mepof.plan.model import Plan
from mepof.plan.store import default_store
from mepof.process import run
from mepof.toolchain.guest import target

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.g4"


@pytest.fixture(scope="session")
def executor() -> LocalExecutor:
    return LocalExecutor(default_store(), os.cpu_count() or 1)


@pytest.fixture(scope="session")
def plan() -> Plan:
    return plan_of(Source.read(QUICKSTART))


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quickstart")


@pytest.fixture(scope="session")
def finished(
    executor: LocalExecutor, plan: Plan, out: Path, pytestconfig: pytest.Config
) -> Finished:
    """The quickstart, run to its end."""
    # Building the kernels takes a quarter of an hour, so show the progress.
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        return executor.run(plan, out, LogDisplay(Console(stderr=True)))


@pytest.fixture(scope="session")
def source(executor: LocalExecutor, plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quickstart's source tree."""
    return fetched(executor, plan, tmp_path_factory.mktemp("source"))


def fetched(executor: LocalExecutor, plan: Plan, out: Path) -> Path:
    """The source tree of a plan's kernel."""
    only = Plan(plan.program, plan.seed, (plan.step("source"),), ())
    return executor.run(only, out, lambda event: None).run.steps["source"].path


@pytest.fixture
def copied_tree(source: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the quickstart's source tree, to be changed."""
    made = tmp_path / "tree"
    run(["cp", "--archive", "--reflink=auto", source, made])
    run(["chmod", "-R", "u+w", made])
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="session")
def plugins(finished: Finished) -> Mapping[str, Path]:
    """The artifacts of a session that counts or records without modelling a core."""
    return {"plugins": finished.run.steps["plugins"].path}


def session_of(finished: Finished, build: str) -> Session:
    """A boot of one of the quickstart's kernels without requests."""
    steps = finished.run.steps
    return Session(
        arch="x86-64",
        kernel=steps[build].path / "kernel",
        initramfs=steps["guest"].path / INITRAMFS,
        requests=(),
        seed=1,
    )


def with_general(session: Session, directory: Path) -> Session:
    """The session, running every action of general with a tenth of its work.

    Args:
        directory: where the program is built.
    """
    compiler = target(session.arch).compiler
    command = ["make", "-s", "-C", f"{native_directory()}/suites", f"OUT={directory}"]
    subprocess.run([*command, "SUITE=general", f"GUEST_CC={compiler}"], check=True, timeout=300)
    program = (directory / "general").read_bytes()
    added = directory / "archive.cpio"
    added.write_bytes(archive(tree([Entry("suites/general", 0o755, program)])))
    actions = load_app("general").actions
    return replace(
        session,
        requests=tuple(agent.Exec((*a.argv, "--scale", "10"), a.seconds) for a in actions),
        archives=(added,),
    )


def check_general(replies: Sequence[agent.Reply]) -> None:
    """Every action succeeded in what the kernel has.

    Args:
        replies: to the requests of :func:`with_general`.
    """
    for action, reply in zip(load_app("general").actions, replies, strict=True):
        assert isinstance(reply, agent.ExecResult)
        assert reply.status == 0, f"{action.name}: {reply.text}"
        # The smallest configuration does without these, and says so.
        if action.name in ("binder", "input", "disk-files"):
            assert lacked(reply.text)
