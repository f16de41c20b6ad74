"""Every action of general on the plain kernel, with a tenth of its work."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.device.protocol import DEVICES
from mepof.executor.protocol import Finished
from mepof.process import run

from .conftest import check_general, session_of, with_general

pytestmark = pytest.mark.boot


def test_every_action_succeeds_in_what_the_kernel_has(finished: Finished, tmp_path: Path) -> None:
    session = with_general(session_of(finished, "plain/build"), tmp_path)
    check_general(
        DEVICES.get("qemu").boot(session, tmp_path / "boot", run, lambda count: None).replies
    )
