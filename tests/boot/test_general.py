"""Every action of general on the plain kernel, with a tenth of its work."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from mepof.app.apps import lacked, load_app
from mepof.device import agent
from mepof.device.initramfs import Entry, archive, tree
from mepof.device.protocol import DEVICES
from mepof.executor.protocol import Finished
from mepof.kernel.overlay import native_directory
from mepof.process import run

from .conftest import session_of

pytestmark = pytest.mark.boot


def test_every_action_succeeds_in_what_the_kernel_has(finished: Finished, tmp_path: Path) -> None:
    command = ["make", "-s", "-C", f"{native_directory()}/suites", f"OUT={tmp_path}"]
    subprocess.run([*command, "SUITE=general"], check=True, timeout=300)
    program = (tmp_path / "general").read_bytes()
    added = tmp_path / "archive.cpio"
    added.write_bytes(archive(tree([Entry("suites/general", 0o755, program)])))
    actions = load_app("general").actions
    session = replace(
        session_of(finished, "plain/build"),
        requests=tuple(agent.Exec((*a.argv, "--scale", "10"), a.seconds) for a in actions),
        archives=(added,),
    )
    outcome = DEVICES.get("qemu").boot(session, tmp_path / "boot", run, lambda count: None)
    for action, reply in zip(actions, outcome.replies, strict=True):
        assert isinstance(reply, agent.ExecResult)
        assert reply.status == 0, f"{action.name}: {reply.text}"
        # The smallest configuration does without these, and says so.
        if action.name in ("binder", "input", "disk-files"):
            assert lacked(reply.text)
