"""Whose signatures are accepted, and whether a file has one. GnuPG's ``gpgv`` verifies."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import join

from pydantic import RootModel

from mepof.described import Described, read_described
from mepof.errors import EnvironmentLack, InputError
from mepof.home import home
from mepof.process import find_tool
from mepof.source.protocol import Workshop

_SYSTEM = Path("/usr/share/keyrings")
_FINGERPRINT = re.compile(r"(?:0x)?([0-9A-Fa-f]{40})")
_ARMOURED = b"-----BEGIN PGP PUBLIC KEY BLOCK-----"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]*")
# Why gpgv refuses, by its status lines; doc/DETAILS of GnuPG lists them.
_REFUSALS = {
    "BADSIG": "the file is not what was signed",
    "EXPKEYSIG": "the key has expired in this keyring",
    "EXPSIG": "the signature has expired",
    "REVKEYSIG": "the key was revoked",
    "NO_PUBKEY": "the key is not in this keyring",
    "ERRSIG": "the signature cannot be checked",
    "NODATA": "it is not a signature",
}


class _Signer(Described):
    """A name for ``signed-by``; ``locate`` are addresses that ``gpg --locate-keys`` knows."""

    title: str
    fingerprints: tuple[str, ...] = ()
    keyring: str | None = None
    package: str | None = None
    locate: tuple[str, ...] = ()


class _Signers(RootModel[dict[str, _Signer]]):
    pass


@dataclass(frozen=True)
class Keyring:
    """A keyring, and whose signatures count.

    Attributes:
        name: what the program calls it.
        path: of the file.
        fingerprints: of the primary keys that count; empty for all in the file.
    """

    name: str
    path: Path
    fingerprints: frozenset[str] = frozenset()


def keyring_of(name: str) -> Keyring:
    """The keyring of a name: one of ``keys.toml``, a keyring of this machine, or a path.

    Raises:
        InputError: it is not a name, or the path does not exist.
        EnvironmentLack: it is not on this machine; the remedy installs it.
    """
    if "/" in name:
        if not Path(name).is_file():
            raise InputError(f"the keyring {name} does not exist")
        return Keyring(name, Path(name))
    if _NAME.fullmatch(name) is None:
        raise InputError(f"`{name}` does not name a keyring", "name one, or write its path")
    file = Path(__file__).with_name("keys.toml")
    signer = read_described(file, _Signers, "keys").root.get(name)
    for stem in (name, *([signer.keyring] if signer and signer.keyring else [])):
        for path in _candidates(stem):
            if path.is_file():
                fingerprints = frozenset(signer.fingerprints) if signer else frozenset()
                return Keyring(name, path, fingerprints)
    raise EnvironmentLack(f"there is no keyring `{name}` on this machine", _remedy(name, signer))


def _candidates(stem: str) -> Iterator[Path]:
    for directory in (own_directory(), _SYSTEM):
        for ending in (".gpg", ".pgp", ".asc", "-archive-keyring.gpg", "-archive-keyring.pgp"):
            yield directory / f"{stem}{ending}"


def own_directory() -> Path:
    """Where a user puts keyrings for mepof."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or home() / ".config") / "mepof" / "keyrings"


def _remedy(name: str, signer: _Signer | None) -> str:
    target = own_directory() / f"{name}.gpg"
    if signer is not None and signer.package:
        return f"apt-get install {signer.package}"
    if signer is not None and signer.locate:
        return (
            f"mkdir -p {target.parent} && gpg --locate-keys {join(signer.locate)}; "
            f"gpg --export {join(signer.fingerprints)} > {target}"
        )
    return f"gpg --export KEY > {target}, or write the path of a keyring"


def verify(signed: Path, signature: Path, keyring: Keyring, what: str, workshop: Workshop) -> str:
    """Check a detached signature.

    Args:
        signed: the file that was signed.
        what: names it in errors.

    Returns:
        the fingerprint of the primary key.

    Raises:
        InputError: the signature is missing, wrong, or of another key.
        EnvironmentLack: ``gpgv`` is not installed.
    """
    gpgv = find_tool("gpgv", "apt-get install gpgv")
    argv = [gpgv, "--status-fd", "1", "--keyring", _binary(keyring.path, workshop).absolute()]
    done = workshop.run([*argv, signature, signed], check=False)
    status = [line.split() for line in done.output.splitlines() if line.startswith("[GNUPG:] ")]
    words = {line[1] for line in status if len(line) > 1}
    valid = [line for line in status if line[1:2] == ["VALIDSIG"]]
    wrong = next((why for word, why in _REFUSALS.items() if word in words), None)
    if done.status == 0 and "GOODSIG" in words and valid and wrong is None:
        primary = valid[0][-1]
        if not keyring.fingerprints or primary in keyring.fingerprints:
            return primary
        wrong = f"{primary} is not one of its keys"
    used = next((line[2] for line in status if line[1:2] in (["NO_PUBKEY"], ["ERRSIG"])), None)
    key = f", key {used}" if used else ""
    raise InputError(
        f"{what} is not signed by `{keyring.name}`: {wrong or 'gpgv refuses it'}{key}",
        f"the keyring is {keyring.path}; do not use the file unless you know why",
    )


def _binary(path: Path, workshop: Workshop) -> Path:
    """The keyring as gpgv reads it: without ASCII armour."""
    try:
        with path.open("rb") as file:
            armoured = _ARMOURED in file.read(4096)
    except OSError as error:
        raise InputError(f"the keyring {path} cannot be read: {error.strerror}") from error
    if not armoured:
        return path
    target = workshop.work / "keyring.gpg"
    target.unlink(missing_ok=True)
    gpg = find_tool("gpg", "apt-get install gpg")
    done = workshop.run(
        [gpg, "--batch", "--no-options", "--dearmor", "--output", target, path], check=False
    )
    if done.status != 0:
        raise InputError(f"the keyring {path} is damaged: {done.output.strip()}")
    return target
