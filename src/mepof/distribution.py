"""Which release of Debian this machine has, where the words that install a package depend on it."""

from __future__ import annotations

import re
from pathlib import Path

RELEASE = Path("/etc/os-release")


def installing_newer(packages: str) -> str:
    """The command that installs packages of which Debian 12 itself has none or too old ones, unlike
    its backports and later releases."""
    old = RELEASE.is_file() and re.search(
        r"^VERSION_CODENAME=\W?bookworm\b", RELEASE.read_text(errors="replace"), re.M
    )
    return f"apt-get install {'-t bookworm-backports ' if old else ''}{packages}"
