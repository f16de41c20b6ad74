"""Source packages of Debian, fetched by apt through the machine's configuration."""

from __future__ import annotations

from pathlib import Path

from mepof.errors import EnvironmentLack, WorkError
from mepof.process import find_tool, run
from mepof.source.debian import apt_of, signed_by

_SECONDS = 600


class DebianSources:
    """Source packages of a suite, from the archives of Debian that this machine uses, whether or
    not it lists their sources.

    Args:
        suite: such as ``bookworm``.
        directory: keeps apt's lists and the packages.
    """

    def __init__(self, suite: str, directory: Path) -> None:
        self._suite = suite
        self._directory = directory
        self._options: tuple[str, ...] = ()

    def unpacked(self, package: str) -> Path:
        """The directory of a package's source, with Debian's patches applied.

        Raises:
            EnvironmentLack: apt, or an archive of Debian, is missing.
            WorkError: the package cannot be fetched.
        """
        made = self._directory / package
        if made.is_dir():
            return made
        fetched = self._directory / "fetched" / package
        fetched.mkdir(parents=True, exist_ok=True)
        apt = find_tool("apt-get", "Debian's packages need a machine with apt")
        find_tool("dpkg-source", "apt-get install dpkg-dev")
        done = run(
            [apt, *self._configured(apt), "source", "--download-only", package],
            cwd=fetched,
            timeout=_SECONDS,
            check=False,
        )
        described = next(iter(sorted(fetched.glob("*.dsc"))), None)
        if done.status != 0 or described is None:
            last = done.output.rstrip().rpartition("\n")[2]
            raise WorkError(f"the source package {package} cannot be fetched: {last}")
        draft = self._directory / f"{package}.draft"
        run(["rm", "-rf", draft])
        run(["dpkg-source", "--no-check", "-x", described, draft], cwd=fetched)
        draft.replace(made)
        return made

    def _configured(self, apt: str) -> tuple[str, ...]:
        """The options by which apt sees the suite's sources."""
        if self._options:
            return self._options
        shown = "$(ORIGIN)|$(LABEL)|$(REPO_URI)"
        rows = run([apt, "indextargets", "--format", shown, "Created-By: Packages"]).output
        fields = [row.split("|") for row in rows.splitlines()]
        uris = dict.fromkeys(row[2] for row in fields if row[:2] == ["Debian", "Debian"])
        if not uris:
            raise EnvironmentLack(
                "apt has no archive of Debian", "add one to /etc/apt/sources.list"
            )
        lines = [f"deb-src {signed_by()}{uri} {self._suite} main" for uri in uris]
        self._options = apt_of(self._directory / "apt", lines)
        run([apt, *self._options, "update"], timeout=_SECONDS)
        return self._options
