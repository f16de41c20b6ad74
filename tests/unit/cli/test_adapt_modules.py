"""``mepof adapt modules``: small kernels and modules that Clang made."""

from __future__ import annotations

import json
import lzma
import subprocess
from pathlib import Path

import pytest
from writers.boot_image import arm64_kernel
from writers.shell import Shell, assert_refused
from writers.traced_kernel import CLANG

from mepof.bootimg.compression import compress

EXPORT = """\
#define EXPORT(symbol, checksum) \\
    asm(".pushsection __ksymtab,\\"a\\"; __ksymtab_" #symbol ": .long 0; .popsection;" \\
        ".pushsection __kcrctab,\\"a\\"; __crc_" #symbol ": .long " #checksum "; .popsection");
"""
KERNEL = """\
const char banner[] = "Linux version %(release)s (someone) #1";
const char words[] = "%(release)s %(magic)s ";
const char name[] = "%(release)s";
EXPORT(module_layout, 1) EXPORT(kmalloc, 0xfedcba98)
void _start(void) {}
"""
#: struct modversion_info of 64-bit kernels, and the two sections that name no length.
VERSIONS = """\
struct version { unsigned long crc; char name[56]; };
__attribute__((section("__versions"), used)) static struct version versions[] = { %s };
"""
EXTENDED = """\
__attribute__((section("__version_ext_crcs"), used)) static unsigned crcs[] = { 1, %s };
asm(".pushsection __version_ext_names,\\"a\\"; .string \\"module_layout\\", \\"kmalloc\\";"
    ".popsection");
"""
MODULE = """\
__attribute__((section(".modinfo"), used)) static const char info[] = "vermagic=%s ";
void kmalloc(void); __attribute__((weak)) void optional(void);
void use(void) { kmalloc(); if (optional) optional(); }
"""
MAGIC = "SMP mod_unload modversions"
SAME = VERSIONS % '{ 1, "module_layout" }, { 0xfedcba98, "kmalloc" }'


def compiled(target: Path, code: str, *flags: str) -> Path:
    source = target.with_name(f"{target.name}.c")
    source.write_text(EXPORT + code)
    options = ("--target=x86_64-linux-gnu", "-O1", "-fno-pic", *flags)
    subprocess.run([CLANG, *options, source, "-o", target], check=True, timeout=60)
    return target


def vmlinux(directory: Path, release: str = "6.12.95-x", magic: str = MAGIC) -> Path:
    directory.mkdir(exist_ok=True)
    code = KERNEL % {"release": release, "magic": magic}
    return compiled(directory / "vmlinux", code, "-nostdlib", "-static")


def module(directory: Path, name: str, code: str, magic: str = f"6.12.90 {MAGIC}") -> Path:
    directory.mkdir(exist_ok=True)
    return compiled(directory / name, MODULE % magic + code, "-c")


@pytest.mark.parametrize("versions", [SAME, EXTENDED % "0xfedcba98"])
def test_modules_load_whose_checksums_are_those_of_the_kernel(
    shell: Shell, tmp_path: Path, versions: str
) -> None:
    kernel, vendor = vmlinux(tmp_path / "build").parent, tmp_path / "vendor"
    plain = module(vendor, "wlan.ko", versions)
    (vendor / "wlan2.ko.xz").write_bytes(lzma.compress(plain.read_bytes()))
    found = shell("adapt", "modules", str(kernel), str(vendor))
    assert (found.status, found.out) == (0, "2 of 2 modules load on Linux 6.12.95-x\n")


@pytest.mark.parametrize(
    ("versions", "magic", "why"),
    [
        (EXTENDED % "7", f"6.12.95-x {MAGIC}", "was built for other declarations: kmalloc"),
        (
            VERSIONS % '{ 2, "module_layout" }, { 3, "kmalloc" }, { 4, "gone" }',
            f"6.12.95-x {MAGIC}",
            "was built for other declarations: kmalloc, module_layout",
        ),
        ("", f"6.12.95-x {MAGIC}", "has no checksums of symbols, which the kernel compares"),
        (
            SAME,
            "6.12.95-x SMP preempt mod_unload modversions",
            "was built for `6.12.95-x SMP preempt mod_unload modversions`, and the kernel is "
            "`6.12.95-x SMP mod_unload modversions`",
        ),
        (
            SAME + "void gone(void); void call(void) { gone(); }",
            f"6.12.95-x {MAGIC}",
            "needs what nothing exports: gone",
        ),
    ],
)
def test_a_module_that_the_kernel_would_refuse_is_named_with_the_reason(
    shell: Shell, tmp_path: Path, versions: str, magic: str, why: str
) -> None:
    kernel = vmlinux(tmp_path / "build")
    bad, good = module(tmp_path / "m", "bad.ko", versions, magic), module(tmp_path, "good.ko", SAME)
    found = shell("adapt", "modules", str(kernel), str(bad.parent), str(good))
    assert found.status == 1
    name, reason, summary = found.out.splitlines()
    assert name == str(bad)
    assert reason.startswith(f"    {why}")
    assert summary == "1 of 2 modules load on Linux 6.12.95-x"
    assert "1 of 2 modules would not load" in found.err


def test_without_checksums_releases_are_compared(shell: Shell, tmp_path: Path) -> None:
    kernel = vmlinux(tmp_path / "build", magic="SMP mod_unload")
    same = module(tmp_path, "same.ko", "", "6.12.95-x SMP mod_unload")
    other = module(tmp_path, "other.ko", "", "6.12.90 SMP mod_unload")
    found = shell("adapt", "modules", str(kernel), str(same), str(other), "--json")
    assert found.status == 1
    document = json.loads(found.out)
    assert document["modules"][str(same)] == []
    (fault,) = document["modules"][str(other)]
    assert fault["reason"].startswith("was built for `6.12.90 SMP mod_unload`")


def test_modules_may_need_each_other(shell: Shell, tmp_path: Path) -> None:
    kernel = vmlinux(tmp_path / "build")
    base = module(tmp_path, "base.ko", SAME + "void help(void) {} EXPORT(help, 9)")
    versions = VERSIONS % '{ 1, "module_layout" }, { %d, "help" }'
    needs = "void help(void); void call(void) { help(); }"
    good = module(tmp_path, "good.ko", versions % 9 + needs)
    bad = module(tmp_path, "bad.ko", versions % 8 + needs)
    found = shell("adapt", "modules", str(kernel), str(base), str(good), str(bad))
    assert found.out.splitlines()[:2] == [str(bad), "    was built for other declarations: help"]
    alone = shell("adapt", "modules", str(kernel), str(good))
    assert "needs what nothing exports: help" in alone.out


def test_a_module_without_the_symbols_of_its_exports_is_what_others_need(
    shell: Shell, tmp_path: Path
) -> None:
    kernel = vmlinux(tmp_path / "build")
    exports = """
        void help(void) {}
        asm(".pushsection __ksymtab_strings,\\"aMS\\",%progbits,1; "
            "__kstrtab_help: .asciz \\"help\\"; __kstrtabns_help: .asciz \\"\\"; .popsection;"
            ".pushsection __ksymtab_gpl,\\"a\\"; "
            "__ksymtab_help: .long help - ., __kstrtab_help - ., __kstrtabns_help - .; .popsection;"
            ".pushsection __kcrctab_gpl,\\"a\\"; .long 9; .popsection");
    """
    base = module(tmp_path, "base.ko", SAME + exports)
    subprocess.run(["strip", "--strip-unneeded", base], check=True)
    assert b"__ksymtab_help" not in base.read_bytes()
    needs = VERSIONS % '{ 1, "module_layout" }, { 9, "help" }'
    user = module(tmp_path, "user.ko", needs + "void help(void); void call(void) { help(); }")
    found = shell("adapt", "modules", str(kernel), str(base), str(user))
    assert (found.status, found.out) == (0, "2 of 2 modules load on Linux 6.12.95-x\n")
    older = module(tmp_path, "older.ko", needs.replace("9", "8"))
    found = shell("adapt", "modules", str(kernel), str(base), str(older))
    assert found.out.splitlines()[:2] == [str(older), "    was built for other declarations: help"]


def test_of_what_is_exported_twice_the_second_does_not_load(shell: Shell, tmp_path: Path) -> None:
    kernel = vmlinux(tmp_path / "build")
    exports = SAME + "void help(void) {} EXPORT(help, 9)"
    first, second = (module(tmp_path, name, exports) for name in ("first.ko", "second.ko"))
    # A module that is there twice is loaded once.
    again = module(tmp_path / "again", "first.ko", exports)
    own = module(tmp_path, "own.ko", "EXPORT(kmalloc, 0xfedcba98)" + SAME)
    found = shell("adapt", "modules", *map(str, (kernel, first, second, again, own)))
    assert found.status == 1
    assert found.out.splitlines() == [
        str(second),
        f"    exports what {first} exports too: help",
        str(own),
        "    exports what the kernel exports too: kmalloc",
        "2 of 4 modules load on Linux 6.12.95-x",
    ]


def test_a_kernel_may_insist_on_signatures(shell: Shell, tmp_path: Path) -> None:
    kernel = vmlinux(tmp_path / "build").parent
    (kernel / "config").write_text("CONFIG_MODULE_SIG=y\nCONFIG_MODULE_SIG_FORCE=y\n")
    signed, bare = module(tmp_path, "signed.ko", SAME), module(tmp_path, "bare.ko", SAME)
    with signed.open("ab") as file:
        file.write(b"\x30\x82" + bytes(20) + b"~Module signature appended~\n")
    found = shell("adapt", "modules", str(kernel), str(signed), str(bare))
    assert found.out.splitlines()[0] == str(bare)
    assert "has no signature, which the kernel requires (CONFIG_MODULE_SIG_FORCE)" in found.out


@pytest.mark.parametrize("packed", ["", "gzip", "lz4-legacy", "xz"])
def test_a_kernel_that_a_boot_loader_starts_is_named(
    shell: Shell, tmp_path: Path, packed: str
) -> None:
    image = arm64_kernel()
    (tmp_path / "Image").write_bytes(compress(image, packed) if packed else image)
    good = module(tmp_path, "good.ko", SAME)
    found = shell("adapt", "modules", str(tmp_path / "Image"), str(good))
    said = "Image is not a vmlinux, but a kernel that a boot loader starts"
    assert_refused(found, f"{said}, compressed with {packed}" if packed else said)
    assert "help: give the vmlinux at the top of the same build" in found.err


def test_what_is_neither_a_kernel_nor_a_module_is_refused(shell: Shell, tmp_path: Path) -> None:
    kernel, good = vmlinux(tmp_path / "build"), module(tmp_path, "good.ko", SAME)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.ko").write_text("no module")
    (tmp_path / "cut.ko").write_bytes(good.read_bytes()[:300])
    (tmp_path / "cut.ko.xz").write_bytes(lzma.compress(good.read_bytes())[:-40])
    for path, message in {
        "empty": "contains no modules",
        "text.ko": "text.ko is not a module for 64 bits",
        "cut.ko": "cut.ko is not a module for 64 bits",
        "cut.ko.xz": "cut.ko.xz cannot be decompressed",
        "gone.ko": "gone.ko cannot be read: No such file or directory",
    }.items():
        assert_refused(shell("adapt", "modules", str(kernel), str(tmp_path / path)), message)
    for kernel, message in {
        tmp_path / "empty": "empty/vmlinux does not exist",
        tmp_path / "text.ko": "text.ko does not state its release",
        vmlinux(tmp_path / "none", magic="(none)"): "loads no modules",
    }.items():
        assert_refused(shell("adapt", "modules", str(kernel), str(good)), message)
