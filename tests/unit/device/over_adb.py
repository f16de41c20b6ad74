"""A machine is prepared over a real adbd on this machine, which goes in the middle.

Run in a network and process namespace of its own: ``python -m tests.unit.device.over_adb DIR``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mepof.device import adb
from mepof.device.preparation import Preparation
from mepof.device.prepared import prepared, restore
from mepof.errors import WorkError

ADBD = "/usr/lib/android-sdk/platform-tools/adbd"
ADDRESS = "localhost:5555"


def start_adbd() -> subprocess.Popen[bytes]:
    """adbd, when it can be reached; it says that it listens before it does."""
    started = subprocess.Popen([ADBD], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1000):
        said = subprocess.run(["adb", "connect", ADDRESS], stdout=subprocess.PIPE, check=False)
        if b"connected to" in said.stdout:
            return started
        assert started.poll() is None, "adbd ended"
    raise AssertionError(f"adbd cannot be reached: {said.stdout!r}")


def main(directory: Path) -> None:
    """Prepare, lose and restore; says ``restored`` at the end."""
    governors = [directory / f"policy{n}" for n in (0, 4)]
    for file in governors:
        file.write_text("schedutil\n")
    settings = [
        {"what": "governor", "path": f"{directory}/policy*", "value": "performance"},
        {
            "what": "service",
            "read": ["cat", f"{directory}/service"],
            "value": "stopped",
            "write": {
                "stopped": ["sh", "-c", f"echo stopped > {directory}/service"],
                "running": ["sh", "-c", f"echo running > {directory}/service"],
            },
        },
    ]
    service = directory / "service"
    service.write_text("running\n")
    described = {"title": "this", "source": "nowhere", "setting": settings}
    preparation = Preparation.model_validate(described)
    daemon = start_adbd()
    shell = adb.AdbShell.connect(ADDRESS)
    try:
        with prepared(shell, preparation, directory / "journals", print):
            assert [file.read_text() for file in governors] == ["performance\n"] * 2
            assert service.read_text() == "stopped\n"
            daemon.kill()
            daemon.wait()
            # It does not come back however long it is waited for.
            patience, adb._RETURN = adb._RETURN, 1.0
        raise AssertionError("nobody noticed that adbd is gone")
    except WorkError as error:
        print(error)
        assert error.remedy == "mepof device restore --adb localhost:5555"
        assert "3 settings are not restored" in error.message
    daemon = start_adbd()
    adb._RETURN = patience
    shell.reconnect()
    restore(shell, directory / "journals", print)
    assert [file.read_text() for file in governors] == ["schedutil\n"] * 2
    assert service.read_text() == "running\n"
    daemon.kill()
    print("restored")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
