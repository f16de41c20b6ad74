"""The modules of a build: read from what kbuild leaves, and put in order."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from writers.elf import ALLOC, CODE, elf64
from writers.traced_kernel import CLANG

from mepof.errors import WorkError
from mepof.kernel import integrity, modules


def built(root: Path, *given: tuple[str, Mapping[str, Sequence[str]]], suffix: str = "o") -> Path:
    """A directory of objects with modules: path without a suffix, and tags of ``.modinfo``."""
    objects = root / "objects"
    objects.mkdir(exist_ok=True)
    for path, info in given:
        (objects / path).parent.mkdir(parents=True, exist_ok=True)
        data = b"".join(f"{tag}={v}\0".encode() for tag, values in info.items() for v in values)
        sections = [(".text", 0, 0x40, CODE), (".init.text", 0, 0x10, CODE)]
        (objects / f"{path}.ko").write_bytes(
            elf64([*sections, (".modinfo", 0, 0, ALLOC)], {}, contents={".modinfo": data})
        )
    listed = "".join(f"{path}.{suffix}\n" for path, _ in given)
    (objects / "modules.order").write_text(listed)
    return objects


def collected(root: Path, objects: Path) -> modules.Modules | None:
    output = root / "output"
    output.mkdir(exist_ok=True)
    assert list(modules.collect(objects, output)) == []
    return modules.Modules.find(output)


@pytest.mark.parametrize("suffix", ["o", "ko"])
def test_modules_come_after_those_that_they_need(tmp_path: Path, suffix: str) -> None:
    objects = built(
        tmp_path,
        ("fs/ext4/ext4", {"depends": ["jbd2,mbcache"], "softdep": ["pre: crc32c post: dm"]}),
        ("fs/jbd2/jbd2", {"depends": [""]}),
        ("fs/mbcache", {}),
        ("crypto/crc32c_generic", {"alias": ["crc32c", "crypto-crc32c"]}),
        ("drivers/null-blk", {"depends": ["configfs-x"]}),
        ("fs/configfs-x", {}),
        suffix=suffix,
    )
    found = collected(tmp_path, objects)
    assert found is not None
    assert [module.name for module in found.modules] == [
        *("jbd2", "mbcache", "crc32c_generic", "ext4", "configfs_x", "null_blk"),
    ]
    ext4 = found.modules[3]
    assert (ext4.path, ext4.needs) == ("fs/ext4/ext4.ko", ("jbd2", "mbcache"))
    assert ext4.wants == ("crc32c_generic",)
    (tmp_path / "output/modules.builtin").write_text("kernel/fs/fat/fat.ko\nkernel/net/a-b.ko\n")
    names = ("ext4", "fat", "a_b", "nfsd")
    assert modules.unbuilt(tmp_path / "output", names) == ["nfsd"]
    assert [each.name for each in found.needed_by(["ext4", "nfsd"]).modules] == [
        *("jbd2", "mbcache", "crc32c_generic", "ext4"),
    ]
    assert ext4.text == 0x40
    assert ext4.file(tmp_path / "output").read_bytes() == (objects / ext4.path).read_bytes()


def test_modules_are_packed_where_modprobe_looks(tmp_path: Path) -> None:
    objects = built(tmp_path, ("fs/ext4/ext4", {"depends": ["jbd2"]}), ("fs/jbd2/jbd2", {}))
    found = collected(tmp_path, objects)
    assert found is not None
    build = tmp_path / "output"
    (build / "vmlinux").write_bytes(b"\0Linux version 6.12.95-x (someone) #1\n\0")
    found.pack(build, tmp_path / "one.tar")
    root = tmp_path / "root"
    root.mkdir()
    subprocess.run(["tar", "-C", root, "-xf", tmp_path / "one.tar"], check=True)
    below = root / "lib/modules/6.12.95-x"
    for path in ("fs/ext4/ext4.ko", "fs/jbd2/jbd2.ko"):
        assert (below / "kernel" / path).read_bytes() == (objects / path).read_bytes()
    order = (below / "modules.order").read_text()
    assert order == "kernel/fs/jbd2/jbd2.ko\nkernel/fs/ext4/ext4.ko\n"
    found.pack(build, tmp_path / "two.tar")
    assert (tmp_path / "two.tar").read_bytes() == (tmp_path / "one.tar").read_bytes()


def test_what_is_built_in_is_kept_and_packed_where_kbuild_lists_it(tmp_path: Path) -> None:
    objects, build = built(tmp_path, ("a", {})), tmp_path / "output"
    listed = {"modules.builtin": b"kernel/b.ko\n", "modules.builtin.modinfo": b"b.alias=x\0"}

    def packed() -> dict[str, bytes]:
        found = collected(tmp_path, objects)
        assert found is not None
        (build / "vmlinux").write_bytes(b"\0Linux version 6.12.95-x (someone) #1\n\0")
        found.pack(build, tmp_path / "one.tar")
        with tarfile.open(tmp_path / "one.tar") as tar:
            files = ((Path(name).name, tar.extractfile(name)) for name in tar.getnames())
            return {name: file.read() for name, file in files if file and "builtin" in name}

    for name, data in listed.items():
        (objects / name).write_bytes(data)
    assert packed() == listed
    # Older kernels make one list.
    (objects / "modules.builtin.modinfo").unlink()
    assert packed() == {"modules.builtin": b"kernel/b.ko\n"}
    # Nor are they kept where no module was built.
    built(tmp_path)
    assert collected(tmp_path, objects) is None
    assert {path.name for path in build.iterdir()} == {"vmlinux"}


def test_a_configuration_with_modules_may_build_none(tmp_path: Path) -> None:
    assert collected(tmp_path, built(tmp_path)) is None
    assert list((tmp_path / "output").iterdir()) == []


def test_modules_of_an_earlier_build_in_the_same_directory_are_removed(tmp_path: Path) -> None:
    assert collected(tmp_path, built(tmp_path, ("a", {}), ("b", {}))) is not None
    found = collected(tmp_path, built(tmp_path, ("a", {})))
    assert found is not None and [module.name for module in found.modules] == ["a"]
    assert [path.name for path in (tmp_path / "output/modules").iterdir()] == ["a.ko"]


def test_a_wish_that_leads_in_a_circle_is_passed_over(tmp_path: Path) -> None:
    found = collected(
        tmp_path,
        built(tmp_path, ("a", {"softdep": ["pre: b gone"]}), ("b", {"softdep": ["pre: a"]})),
    )
    assert found is not None and [module.name for module in found.modules] == ["b", "a"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([("a", {"depends": ["b"]})], "the module a needs b, which was not built"),
        (
            [("a", {"depends": ["b"]}), ("b", {"depends": ["a"]})],
            "the modules a → b → a need each other",
        ),
    ],
)
def test_modules_that_cannot_be_put_in_order_are_an_error(
    tmp_path: Path, given: list[tuple[str, Mapping[str, Sequence[str]]]], message: str
) -> None:
    with pytest.raises(WorkError) as raised:
        collected(tmp_path, built(tmp_path, *given))
    assert raised.value.message == message


def test_a_damaged_module_is_named(tmp_path: Path) -> None:
    objects = built(tmp_path, ("a", {}))
    (objects / "a.ko").write_bytes(b"\x7fELF")
    with pytest.raises(WorkError, match=r"a\.ko cannot be read as a module"):
        collected(tmp_path, objects)
    (objects / "a.ko").unlink()
    with pytest.raises(WorkError, match=r"a\.ko cannot be read as a module"):
        collected(tmp_path, objects)
    (objects / "modules.order").unlink()
    with pytest.raises(WorkError, match="kbuild left no list of modules"):
        collected(tmp_path, objects)


def test_only_code_that_stays_is_listed(tmp_path: Path) -> None:
    objects = built(tmp_path, ("a", {}))
    assert modules.code_sections(objects / "a.ko") == {".text": 0x40}


# --- tables of modules, as an assembler makes them

_CODE = 'f: nop\n.section .init.text,"ax"\ni: nop\n.data\nd: .quad 0\n'
_TABLE = '.section __ex_table,"a"\n'


def module_of(root: Path, *tables: str) -> Path:
    source = root / "m.s"
    source.write_text(".text\n" + _CODE + "\n".join(tables) + "\n")
    target = root / "m.ko"
    subprocess.run(
        [CLANG, "--target=x86_64-linux-gnu", "-c", source, "-o", target], check=True, timeout=60
    )
    return target


def entry(instruction: str, fixup: str) -> str:
    return f"{_TABLE}.long {instruction} - .\n.long {fixup} - .\n.long 1\n"


ORC = '.section .orc_unwind_ip,"a"\n.long f - .\n.section .orc_unwind,"a"\n'


def test_a_module_whose_tables_fit_its_text_has_no_fault(tmp_path: Path) -> None:
    whole = module_of(tmp_path, entry("f", "i"), entry("i", "f"), ORC + ".zero 6\n")
    assert list(integrity.module_faults(whole)) == []
    assert list(integrity.module_faults(module_of(tmp_path))) == []


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        (entry("d", "f"), "which is not code"),
        (entry("f", "elsewhere"), "leads to SHN_UNDEF at 0x4, which is not code"),
        (f"{_TABLE}.long f - .\n.zero 8\n", "the exception table has no address at 0x4"),
        (f"{_TABLE}.long f - .\n", "the exception table ends within an entry"),
        (ORC + ".zero 12\n", "the unwinder has 1 addresses and 12 bytes of entries"),
    ],
)
def test_a_table_that_does_not_fit_is_a_fault(tmp_path: Path, table: str, fault: str) -> None:
    (found,) = integrity.module_faults(module_of(tmp_path, table))
    assert fault in found
