"""Files outside the tree that a configuration names."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.errors import InputError
from mepof.kernel import kconfig, outside


def test_files_outside_the_tree_are_those_that_the_kernel_then_holds(tmp_path: Path) -> None:
    fragment = tmp_path / "my.config"
    lines = [
        'CONFIG_SYSTEM_TRUSTED_KEYS="/etc/keys/ca.pem"',
        'CONFIG_SYSTEM_REVOCATION_KEYS="certs/revoked.pem"',
        'CONFIG_MODULE_SIG_KEY="pkcs11:token=a"',
        'CONFIG_EXTRA_FIRMWARE="amd/a.bin b.bin"',
        'CONFIG_DEFAULT_INIT="/sbin/init"',
        "# CONFIG_SYSTEM_BLACKLIST_HASH_LIST is not set",
    ]
    fragment.write_text("\n".join(lines) + "\n")
    named = {
        Path("/etc/keys/ca.pem"),
        *map(Path, ("/lib/firmware/amd/a.bin", "/lib/firmware/b.bin")),
    }
    assert outside.named_by(kconfig.merge([fragment])) == named
    assert outside.named_in(fragment.read_text()) == named
    moved = [*lines, 'CONFIG_EXTRA_FIRMWARE_DIR="/opt/fw"']
    assert {Path("/opt/fw/b.bin"), Path("/opt/fw/amd/a.bin")} < outside.named_in("\n".join(moved))
    assert (
        outside.named_in("\n".join([lines[3], 'CONFIG_EXTRA_FIRMWARE_DIR="firmware"']))
        == frozenset()
    )
    assert (
        outside.named_in('CONFIG_SYSTEM_TRUSTED_KEYS=""\nCONFIG_EXTRA_FIRMWARE=""\n') == frozenset()
    )


def test_an_initramfs_is_a_directory_and_what_a_list_takes(tmp_path: Path) -> None:
    root, listed = tmp_path / "root", tmp_path / "list"
    (root / "bin").mkdir(parents=True)
    listed.write_text(f"dir /dev 0755 0 0\nfile /init {tmp_path}/init 0755 0 0\n")
    config = f'CONFIG_INITRAMFS_SOURCE="{root} {listed} usr/more"\n'
    assert outside.named_in(config) == {root, listed, tmp_path / "init"}
    seen = [outside.digest(outside.named_in(config))]
    (tmp_path / "init").write_text("one")
    seen.append(outside.digest(outside.named_in(config)))
    (tmp_path / "init").write_text("two")
    seen.append(outside.digest(outside.named_in(config)))
    (root / "bin" / "sh").write_text("shell")
    seen.append(outside.digest(outside.named_in(config)))
    (root / "bin" / "sh").chmod(0o755)
    seen.append(outside.digest(outside.named_in(config)))
    assert len({*seen}) == 5
    assert outside.digest(outside.named_in(config)) == seen[-1]


def test_what_does_not_exist_has_no_digest(tmp_path: Path) -> None:
    assert outside.digest([tmp_path / "none"]) is None
    assert outside.digest([]) is None


def test_what_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("key")

    def refused(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(outside, "file_digest", refused)
    with pytest.raises(InputError, match=r"key, which the config names, cannot be read: Perm"):
        outside.digest([tmp_path / "key"])
