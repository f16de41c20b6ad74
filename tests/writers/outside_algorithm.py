"""``examples/plugin``, installed as another distribution is: from a wheel, by pip."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import mepof

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"


@dataclass(frozen=True)
class Installed:
    """The distribution in a directory that is not this Python's own.

    Attributes:
        site: where it is installed.
    """

    site: Path

    def python(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a Python that finds it and the mepof that is tested."""
        path = os.pathsep.join(map(str, (self.site, Path(mepof.__file__).parents[1])))
        return subprocess.run(
            [sys.executable, *words],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
        )

    def mepof(self, *words: str | Path) -> str:
        """What a command prints; it succeeds."""
        done = self.python("-m", "mepof.cli.main", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout


def install(site: Path) -> Installed:
    """Build the wheel and install it, without a network."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    offline = ["--no-index", "--no-build-isolation", "--no-deps"]
    subprocess.run([*pip, *offline, "--target", str(site), str(EXAMPLE)], check=True)
    return Installed(site)
