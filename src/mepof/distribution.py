"""Which release of Debian this machine has, where the words that install a package depend on it."""

from __future__ import annotations

import re
from pathlib import Path

RELEASE = Path("/etc/os-release")


def codename() -> str:
    """The name of the release, such as ``bookworm``; empty if the machine does not tell."""
    text = RELEASE.read_text(errors="replace") if RELEASE.is_file() else ""
    found = re.search(r"^VERSION_CODENAME=\W?(\w+)", text, re.M)
    return found[1] if found else ""


def installing_newer(packages: str) -> str:
    """The command that installs packages of which Debian 12 itself has none or too old ones, unlike
    its backports and later releases."""
    options = "-t bookworm-backports " if codename() == "bookworm" else ""
    return f"apt-get install {options}{packages}"
