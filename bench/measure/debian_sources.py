"""Source packages of Debian, fetched by apt through the machine's configuration."""

from __future__ import annotations

from pathlib import Path

from mepof.errors import EnvironmentLack, WorkError
from mepof.process import find_tool, run

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
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
        root = self._directory / "apt"
        for each in ("lists/partial", "cache/archives/partial"):
            (root / each).mkdir(parents=True, exist_ok=True)
        key = f"[signed-by={_KEYRING}] " if _KEYRING.is_file() else ""
        lines = [f"deb-src {key}{uri} {self._suite} main\n" for uri in uris]
        (root / "sources.list").write_text("".join(lines))
        (root / "status").touch()
        settings = {
            "Dir::Etc::sourcelist": root / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": root / "lists",
            "Dir::State::status": root / "status",
            "Dir::Cache": root / "cache",
            "Acquire::Languages": "none",
            "APT::Sandbox::User": "",
        }
        named = (("-o", f"{name}={value}") for name, value in settings.items())
        self._options = tuple(word for pair in named for word in pair)
        run([apt, *self._options, "update"], timeout=_SECONDS)
        return self._options
