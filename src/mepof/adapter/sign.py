"""Signs the index of what is published, by the programs that are installed. Keys stay in their
files: no argument, message or log has one."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from mepof.errors import InputError, WorkError
from mepof.process import Completed, find_tool
from mepof.toolchain.protocol import Run

_SECONDS = 60.0

#: What of OpenPGP (RFC 9580) a package manager reads: a signature as text or as bytes, or the
#: signed text with its signature.
Form = Literal["armored", "binary", "clear"]
_OPTIONS: dict[Form, tuple[str, ...]] = {
    "armored": ("--armor", "--detach-sign"),
    "binary": ("--detach-sign",),
    "clear": ("--armor", "--clear-sign"),
}


class Signer(Protocol):
    """One way to sign."""

    @property
    def suffix(self) -> str:
        """What is added to the name of a file for its signature."""

    def find(self, run: Run) -> None:
        """Look for the program and the key.

        Raises:
            InputError: there is no such key.
            EnvironmentLack: the program is not installed.
        """

    def check(self, run: Run) -> None:
        """Look for both, and sign a scratch file, before anything is built.

        Raises:
            InputError: there is no such key, or it cannot sign.
            EnvironmentLack: the program is not installed.
        """

    def sign(self, file: Path, comment: str, run: Run) -> None:
        """Write the signature of a file beside it.

        Raises:
            WorkError: it cannot be signed.
        """

    def sign_list(self, file: Path, target: Path, form: Form, run: Run) -> None:
        """Sign a file of a repository, if package managers know this kind of signature.

        Raises:
            WorkError: it cannot be signed.
        """


@dataclass(frozen=True)
class Gnupg:
    """A key of the user's GnuPG keyring, by its fingerprint, identifier or address."""

    key: str
    suffix: str = ".asc"

    def find(self, run: Run) -> None:
        argv = [_gpg(), "--batch", "--list-secret-keys", "--", self.key]
        if run(argv, check=False, timeout=_SECONDS).status != 0:
            raise InputError(
                f"GnuPG has no secret key `{self.key}`", "gpg --list-secret-keys shows the keys"
            )

    def check(self, run: Run) -> None:
        self.find(run)
        _try(self, f"gpg --change-passphrase {self.key}", run)

    def sign(self, file: Path, comment: str, run: Run) -> None:
        self.sign_list(file, file.with_name(file.name + self.suffix), "armored", run)

    def sign_list(self, file: Path, target: Path, form: Form, run: Run) -> None:
        # A passphrase that gpg-agent does not know is an error, at a terminal too.
        options = ("--batch", "--yes", "--pinentry-mode", "error", *_OPTIONS[form])
        argv = [_gpg(), "--local-user", self.key, "--output", target, *options, file]
        _check(run(argv, check=False, timeout=_SECONDS), file, f"the GnuPG key {self.key}")


@dataclass(frozen=True)
class Minisign:
    """A secret key of minisign that has no password, since nobody is there to enter it."""

    key: Path
    suffix: str = ".minisig"

    def find(self, run: Run) -> None:
        _minisign()
        if not self.key.is_file():
            raise InputError(
                f"there is no minisign key {self.key}",
                f"minisign -G -W -p minisign.pub -s {self.key}",
            )

    def check(self, run: Run) -> None:
        self.find(run)
        _try(self, f"minisign -C -W -s {self.key}", run)

    def sign(self, file: Path, comment: str, run: Run) -> None:
        target = file.with_name(file.name + self.suffix)
        argv = [_minisign(), "-S", "-s", self.key, "-m", file, "-x", target, "-t", comment]
        _check(run(argv, check=False, timeout=_SECONDS), file, f"minisign with {self.key}")

    def sign_list(self, file: Path, target: Path, form: Form, run: Run) -> None:
        """Do nothing: package managers read GnuPG's signatures alone."""


def _gpg() -> str:
    return find_tool("gpg", "apt-get install gpg")


def _minisign() -> str:
    return find_tool("minisign", "apt-get install minisign")


def _try(signer: Signer, removal: str, run: Run) -> None:
    """Sign a scratch file.

    Args:
        removal: the command that removes the key's passphrase.

    Raises:
        InputError: the key cannot sign.
    """
    with tempfile.TemporaryDirectory() as work:
        file = Path(work) / "index.json"
        file.write_text("{}")
        try:
            signer.sign(file, "scratch", run)
        except WorkError as error:
            raise InputError(
                error.message, f"nobody is there to enter a passphrase; to remove it: {removal}"
            ) from error


def _check(done: Completed, file: Path, by: str) -> None:
    if done.status != 0:
        said = next((line for line in reversed(done.output.splitlines()) if line.strip()), "")
        raise WorkError(f"{file.name} cannot be signed by {by}: {said or 'it failed'}")
