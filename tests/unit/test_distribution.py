"""The words that install a package, by the release of Debian."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof import distribution

PLAIN = "apt-get install adb"
BACKPORTS = "apt-get install -t bookworm-backports adb"


@pytest.mark.parametrize(
    ("release", "command"),
    [
        ('PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_CODENAME=bookworm\n', BACKPORTS),
        ('ID=debian\nVERSION_CODENAME="bookworm"\n', BACKPORTS),
        ("VERSION_CODENAME=trixie\nDEBIAN_VERSION_FULL=13.8\nID=debian\n", PLAIN),
        ('ID=fedora\nVERSION_CODENAME=""\n', PLAIN),
        (None, PLAIN),
    ],
)
def test_only_debian_12_takes_newer_packages_from_its_backports(
    release: str | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "os-release"
    if release is not None:
        file.write_text(release)
    monkeypatch.setattr(distribution, "RELEASE", file)
    assert distribution.installing_newer("adb") == command
