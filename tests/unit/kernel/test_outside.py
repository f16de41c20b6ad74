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


def test_an_initramfs_may_be_named_by_a_pattern(tmp_path: Path) -> None:
    line = f'CONFIG_INITRAMFS_SOURCE="{tmp_path}/*.list"'
    assert outside.named_in(line) == {tmp_path / "*.list"}
    for name in ("a", "b"):
        (tmp_path / f"{name}.list").write_text(f"file /{name} {tmp_path}/{name} 0755 0 0\n")
    named = {tmp_path / name for name in ("a.list", "b.list", "a", "b")}
    assert outside.named_in(line) == outside.named_in(line.replace("*", "**")) == named
    before = outside.digest(named)
    (tmp_path / "a.list").write_text("dir /dev 0755 0 0\n")
    assert outside.digest(outside.named_in(line)) != before
    assert missed(line)[0][0] == f"CONFIG_INITRAMFS_SOURCE names {tmp_path}/b, which does not exist"


def test_hashes_of_refused_keys_may_be_beside_what_includes_them(tmp_path: Path) -> None:
    line = 'CONFIG_SYSTEM_BLACKLIST_HASH_LIST="refused.txt"'
    assert len(missed(line, tmp_path)) == 1
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs/refused.txt").touch()
    assert missed(line, tmp_path) == []


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


def missed(line: str, *directories: Path) -> list[tuple[str, str]]:
    return [*outside.lacking(f"{line}\n", directories)]


def test_files_that_are_not_there_are_named_with_what_to_write(tmp_path: Path) -> None:
    ((message, remedy),) = missed('CONFIG_UNUSED_KSYMS_WHITELIST="abi.raw"', tmp_path)
    assert message == "CONFIG_UNUSED_KSYMS_WHITELIST names abi.raw, which is not in the tree"
    assert remedy == 'write CONFIG_UNUSED_KSYMS_WHITELIST="", or the absolute path of a file'
    (tmp_path / "abi.raw").touch()
    assert missed('CONFIG_UNUSED_KSYMS_WHITELIST="abi.raw"', tmp_path) == []
    line = f'CONFIG_UNUSED_KSYMS_WHITELIST="{tmp_path}/abi.raw"\n'
    assert outside.named_in(line) == {tmp_path / "abi.raw"}
    for symbol in ("SYSTEM_BLACKLIST_HASH_LIST", "BOOT_CONFIG_EMBED_FILE", "IPE_BOOT_POLICY"):
        ((message, _),) = missed(f'CONFIG_{symbol}="/nowhere/file"')
        assert message == f"CONFIG_{symbol} names /nowhere/file, which does not exist"
    # Make or a list replaces variables; none of the others is a file.
    line = 'CONFIG_INITRAMFS_SOURCE="$(ROOT)/list"\nCONFIG_MODULE_SIG_KEY="pkcs11:token=a"'
    assert missed(f'{line}\nCONFIG_SYSTEM_TRUSTED_KEYS=""') == []
    # The shell expands the names for an initramfs.
    assert missed('CONFIG_INITRAMFS_SOURCE="~/root /nowhere/*.list"') == []
    # One that cannot be looked at is not there, either.
    line = f'CONFIG_SYSTEM_TRUSTED_KEYS="/{"long" * 100}.pem"'
    assert missed(line)[0][0].endswith("which does not exist")


def test_firmware_is_looked_for_in_its_directory(tmp_path: Path) -> None:
    names = "a.bin b.bin c.bin d.bin e.bin"
    line = f'CONFIG_EXTRA_FIRMWARE="{names}"\nCONFIG_EXTRA_FIRMWARE_DIR="fw"'
    ((message, remedy),) = missed(line, tmp_path)
    assert message == (
        "CONFIG_EXTRA_FIRMWARE names fw/a.bin, fw/b.bin, fw/c.bin, fw/d.bin and 1 more, which are "
        "not in the tree"
    )
    assert remedy.startswith("put it there without compression")
    (tmp_path / "fw").mkdir()
    for name in names.split():
        (tmp_path / "fw" / name).touch()
    assert missed(line, tmp_path) == []


def test_what_an_initramfs_is_made_of_has_absolute_paths(tmp_path: Path) -> None:
    (tmp_path / "list").write_text(f"file /init {tmp_path}/init 0755 0 0\n")
    ((message, remedy),) = missed('CONFIG_INITRAMFS_SOURCE="list"', tmp_path)
    assert message == (
        "CONFIG_INITRAMFS_SOURCE names list, which the build does not find by a relative path"
    )
    assert "absolute paths alone" in remedy
    ((message, _),) = missed(f'CONFIG_INITRAMFS_SOURCE="{tmp_path}/list"', tmp_path)
    assert message == f"CONFIG_INITRAMFS_SOURCE names {tmp_path}/init, which does not exist"
    (tmp_path / "init").touch()
    assert missed(f'CONFIG_INITRAMFS_SOURCE="{tmp_path}/list"', tmp_path) == []
    # Make itself looks for a finished archive, in the tree as well.
    assert len(missed('CONFIG_INITRAMFS_SOURCE="usr/own.cpio.gz"', tmp_path)) == 1
    (tmp_path / "usr").mkdir()
    (tmp_path / "usr/own.cpio.gz").touch()
    assert missed('CONFIG_INITRAMFS_SOURCE="usr/own.cpio.gz"', tmp_path) == []
