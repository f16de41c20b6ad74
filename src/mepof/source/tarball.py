"""A tarball with a checksum, a signature or both: at a URL, or on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mepof.errors import InputError
from mepof.kernel.source import check_kernel
from mepof.plan.digest import file_digest
from mepof.source.address import (
    Address,
    attribute_keys,
    has_tarball_suffix,
    scheme_of,
    sha256_of,
    split,
)
from mepof.source.download import Missing, download, fetched, forget
from mepof.source.keyring import Keyring, keyring_of, verify
from mepof.source.protocol import Pin, Workshop
from mepof.source.unpack import decompress, extract, is_tarball

KEYS = ("sha256", "signed-by", "signature")
_GIT_KEYS = frozenset({"tag", "branch", "commit"})
# Their releases are signed by the people that `kernel.org` stands for.
_KERNEL_ORG = (".kernel.org",)


class TarballSource:
    """``https://…/linux-6.12.tar.xz#sha256=…&signed-by=kernel.org``, or a path like it.

    The signature is kernel.org's kind: of the uncompressed tar, in ``….tar.sign`` beside it.
    """

    def reads(self, address: str) -> bool:
        scheme, location = scheme_of(address), address.partition("#")[0]
        keys = attribute_keys(address)
        if scheme in ("http", "https", "ftp"):
            return not location.endswith(".git") and keys.isdisjoint(_GIT_KEYS)
        if scheme == "file":
            return has_tarball_suffix(location)
        return not scheme and not keys.isdisjoint(KEYS)

    def parse(self, address: str) -> None:
        parsed = split(address, KEYS)
        if not urlsplit(parsed.location).path.strip("/"):
            raise InputError(f"`{address}` names no file", "write the URL of a tarball")
        checksum, signer = sha256_of(parsed, address), _signer(parsed)
        if "signature" in parsed.attributes and signer is None:
            raise InputError(
                f"`{address}`: a signature needs `signed-by`", "add &signed-by=KEYRING"
            )
        if checksum is None and signer is None and scheme_of(address) != "file":
            raise InputError(
                f"`{address}` does not say how the download is verified",
                "add #sha256=… or #signed-by=KEYRING; from a git server, write git+URL#tag=NAME",
            )

    def host(self, address: str) -> str | None:
        location = split(address, KEYS).location
        if scheme_of(location) == "file":
            return unquote(urlsplit(location).path)
        return None if scheme_of(location) else location

    def check(self, address: str) -> None:
        self.parse(address)
        path = self.host(address)
        if path is None:
            return
        if not Path(path).is_file():
            why = "is not a file" if Path(path).exists() else "does not exist"
            raise InputError(f"{path} {why}")
        if not is_tarball(Path(path)):
            raise InputError(f"{path} is not a tarball")

    def pin(self, address: str, workshop: Workshop) -> Pin:
        return {}

    def identity(self, address: str, pin: Pin) -> Mapping[str, str]:
        signer = _signer(split(address, KEYS))
        return {} if signer is None else {"keyring": file_digest(keyring_of(signer).path)}

    def fetch(self, address: str, pin: Pin, output: Path, workshop: Workshop) -> None:
        parsed = split(address, KEYS)
        checksum, signer = sha256_of(parsed, address), _signer(parsed)
        # What is missing is reported before anything is downloaded.
        keyring = None if signer is None else keyring_of(signer)
        given = self.host(address)
        path, joined = (
            (Path(given), False) if given else fetched(parsed.location, checksum, workshop)
        )
        digest = file_digest(path)
        if checksum is not None and digest != checksum:
            raise InputError(
                f"{parsed.location} has the SHA-256 {digest}, not {checksum}",
                "correct the checksum only if you know why it changed",
            )
        if keyring is not None:
            for again in (joined and checksum is None, False):
                try:
                    path = self._verified(parsed, path, keyring, workshop)
                    break
                except Missing:  # what was downloaded is not wrong
                    raise
                except InputError:
                    if given is None:
                        forget(path)
                    if not again:
                        raise
                    # One of its parts may be of another file.
                    path = download(parsed.location, None, workshop)
                    digest = file_digest(path)
        if checksum is None:
            workshop.note(f"to name exactly this file, add sha256={digest}")
        extract(path, output, workshop, parsed.location)
        check_kernel(output, parsed.location)

    def _verified(self, address: Address, path: Path, keyring: Keyring, workshop: Workshop) -> Path:
        """The uncompressed tar, of which the signature was checked."""
        where = address.attributes.get("signature") or signature_of(address.location)
        if scheme_of(where) in ("", "file"):
            signature = Path(unquote(urlsplit(where).path) if scheme_of(where) else where)
            if not signature.is_file():
                raise InputError(f"the signature {signature} does not exist", "add signature=PATH")
        else:
            signature = download(where, None, workshop)
        signed = path
        if where.endswith((".tar.sign", ".tar.asc", ".tar.sig")):
            signed = workshop.work / "signed.tar"
            decompress(path, signed, workshop.run, address.location)
        try:
            primary = verify(signed, signature, keyring, address.location, workshop)
        except InputError:
            if scheme_of(where) not in ("", "file"):
                forget(signature)
            raise
        workshop.note(f"{address.location} is signed by {primary}")
        return signed


def signature_of(location: str) -> str:
    """Where kernel.org has the signature of a tarball: of the uncompressed tar, beside it."""
    stem, tar, _ = location.rpartition(".tar")
    return f"{stem}.tar.sign" if tar else f"{location}.sign"


def signer_of_host(url: str) -> str | None:
    """The keyring that verifies what a server has, where an address does not say how."""
    return "kernel.org" if f".{urlsplit(url).hostname or ''}".endswith(_KERNEL_ORG) else None


def _signer(address: Address) -> str | None:
    given = address.attributes.get("signed-by")
    if given is None and "sha256" not in address.attributes and scheme_of(address.location):
        return signer_of_host(address.location)
    return given


SOURCE = TarballSource()
