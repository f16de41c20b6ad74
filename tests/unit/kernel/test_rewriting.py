"""Rewriting a kernel by LLVM's BOLT: what moves, what stays, and what every table says then."""

from __future__ import annotations

import shutil
import struct
from contextlib import nullcontext
from pathlib import Path

import pytest
from writers.movable_kernel import COUNTS, FUNCTIONS, link

from mepof.errors import InputError, WorkError
from mepof.kernel import code_tables, kconfig, rewriting
from mepof.kernel.vmlinux import Vmlinux
from mepof.process import run

BOLT, CLANG, LINKER = "llvm-bolt-22", "clang-22", "ld.lld-22"
NEEDS_BOLT = pytest.mark.skipif(
    not all(map(shutil.which, (BOLT, CLANG, LINKER))),
    reason=f"{BOLT}, {CLANG} and {LINKER} are not installed: tools/setup",
)


def rewritten(
    directory: Path, counts: str = COUNTS, candidates: tuple[str, ...] = FUNCTIONS
) -> tuple[Vmlinux, Vmlinux, rewriting.Rewritten]:
    """The kernel as linked, as rewritten, and what is said of it."""
    vmlinux, output = link(directory, CLANG, LINKER), directory / "new"
    (directory / "counts").write_text(counts)
    done = rewriting.rewrite(
        BOLT, vmlinux, directory / "counts", set(candidates), output, directory, run
    )
    return Vmlinux.read(vmlinux), Vmlinux.read(output), done


def code_of(kernel: Vmlinux, name: str) -> bytes:
    (found,) = (each for each in kernel.functions if name in each.names)
    return kernel.at(found.address, found.size)


@NEEDS_BOLT
def test_what_never_ran_moves_out_of_a_function(tmp_path: Path) -> None:
    old, new, done = rewritten(tmp_path)
    assert code_of(old, "copy") != code_of(new, "copy")
    assert (done.functions, done.alone) == (4, 4)
    reserved = old.symbol("__bolt_reserved_start")
    assert reserved is not None
    # NOPL (%rax); MOVL (%rsi), %eax
    assert new.at(reserved, 5) == bytes.fromhex("0f1f00 8b06")
    assert old.at(reserved, 5) == b"\xcc" * 5


@NEEDS_BOLT
def test_every_table_points_to_the_instructions_that_it_pointed_to(tmp_path: Path) -> None:
    old, new, _ = rewritten(tmp_path)
    before, after = code_tables.read(old), code_tables.read(new)
    assert before.sections == after.sections
    assert len(before.references) == len(after.references) == 13
    for section in before.sections - {"__ex_table"}:
        one, other = (
            [r for r in each.references if inside(kernel, section, r.field)]
            for kernel, each in ((old, before), (new, after))
        )
        for was, now in zip(one, other, strict=True):
            assert old.at(was.anchor, 1) == new.at(now.anchor, 1)
            assert was.inside == now.inside
    moved = {r.anchor for r in before.references} - {r.anchor for r in after.references}
    assert len(moved) >= 6


def inside(kernel: Vmlinux, section: str, address: int) -> bool:
    found = kernel.sections[section]
    return found.address <= address < found.end


@NEEDS_BOLT
def test_the_exception_table_is_sorted_again(tmp_path: Path) -> None:
    old, new, _ = rewritten(tmp_path)
    entries = []
    for kernel in (old, new):
        table = kernel.sections["__ex_table"]
        rows = list(struct.iter_unpack("<iii", kernel.content(table)))
        entries.append([(12 * n + distance, kind) for n, (distance, _, kind) in enumerate(rows)])
    before, after = entries
    assert after == sorted(after)
    # What came first is in the cold part now, behind everything else.
    assert [kind for _, kind in before] == [3, 4]
    assert [kind for _, kind in after] == [4, 3]


@NEEDS_BOLT
@pytest.mark.parametrize(
    "name", ["has_feature", "returns_to_itself", "interprets", "leaves_by_key"]
)
def test_a_function_with_what_cannot_be_kept_up_to_date_stays(tmp_path: Path, name: str) -> None:
    old, new, _ = rewritten(tmp_path)
    assert code_of(old, name) == code_of(new, name)


@NEEDS_BOLT
def test_a_call_on_a_condition_at_the_end_of_a_function_stays_one(tmp_path: Path) -> None:
    old, new, _ = rewritten(tmp_path)
    assert code_of(old, "leaves") == code_of(new, "leaves")


@NEEDS_BOLT
def test_jumps_that_the_kernel_patches_lead_where_they_led(tmp_path: Path) -> None:
    old, new, _ = rewritten(tmp_path)
    before, after = code_tables.read(old), code_tables.read(new)
    (was,), (now,) = before.features, after.features
    assert was.site != now.site and was.target != now.target
    # MOVL $1, %eax where there is the feature, and XORL %eax, %eax where it is missing.
    for kernel, jump in ((old, was), (new, now)):
        assert followed(kernel, jump.site + 5) == bytes.fromhex("b801000000")
        assert kernel.at(jump.target, 2) == bytes.fromhex("31c0")
    assert (was.elsewhere, was.targets, was.onwards) == (now.elsewhere, now.targets, now.onwards)
    (off,), (off_now,) = before.keys, after.keys
    assert off.site != off_now.site
    for kernel, key in ((old, off), (new, off_now)):
        assert kernel.at(key.site, 5) == bytes.fromhex("0f1f440000")
        assert followed(kernel, key.site + 5) == bytes.fromhex("b801000000")
        assert kernel.at(key.target, 5) == bytes.fromhex("b802000000")


@NEEDS_BOLT
def test_a_function_that_returns_to_itself_by_iret_pushes_its_new_address(tmp_path: Path) -> None:
    old, new, _ = rewritten(tmp_path)
    (was, now) = (pushed(kernel) for kernel in (old, new))
    assert was != now
    for kernel, target in ((old, was), (new, now)):
        assert kernel.at(target, 5) == bytes.fromhex("b803000000")


def pushed(kernel: Vmlinux) -> int:
    """The address that is pushed before IRET."""
    section = kernel.sections[".text"]
    code = kernel.content(section)
    at = code.index(b"\x48\xcf") - 5
    assert code[at] == 0x68
    return section.address & ~0xFFFFFFFF | int.from_bytes(code[at + 1 : at + 5], "little")


def followed(kernel: Vmlinux, address: int) -> bytes:
    """Five bytes of what is executed at an address, after the jumps there."""
    code = kernel.at(address, 5)
    if code[0] == 0xE9:
        return followed(kernel, address + 5 + int.from_bytes(code[1:], "little", signed=True))
    if code[0] == 0xEB:
        return followed(kernel, address + 2 + int.from_bytes(code[1:2], "little", signed=True))
    return code


@NEEDS_BOLT
def test_only_candidates_are_touched(tmp_path: Path) -> None:
    old, new, done = rewritten(tmp_path, candidates=("has_feature",))
    assert (done.functions, done.alone) == (0, 9)
    assert old.data == new.data


@NEEDS_BOLT
def test_a_kernel_without_reserved_space_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="no space for what BOLT moves"):
        rewriting.check_kernel(link(tmp_path, CLANG, LINKER, reserved=False))


@NEEDS_BOLT
def test_what_bolt_says_of_a_kernel_that_it_does_not_take_is_the_error(tmp_path: Path) -> None:
    vmlinux = link(tmp_path, CLANG, LINKER)
    vmlinux.write_bytes(vmlinux.read_bytes().replace(b"linux_banner", b"linux_manner"))
    (tmp_path / "counts").write_text(COUNTS)
    with pytest.raises(WorkError, match=r"BOLT cannot rewrite this kernel: .*linux_banner"):
        rewriting.rewrite(
            BOLT, vmlinux, tmp_path / "counts", set(FUNCTIONS), tmp_path / "new", tmp_path, run
        )


@pytest.mark.parametrize(
    ("arch", "lines", "reason"),
    [
        ("arm64", [], "for x86-64 only, not for arm64"),
        ("x86-64", ["CONFIG_RELOCATABLE=y"], "CONFIG_RELOCATABLE"),
        ("x86-64", ["CONFIG_KASAN=y"], "CONFIG_KASAN"),
    ],
)
def test_a_configuration_that_bolt_cannot_take_is_refused_with_the_remedy(
    arch: str, lines: list[str], reason: str
) -> None:
    with pytest.raises(InputError, match=reason) as raised:
        rewriting.check_configuration(lines, arch)
    assert "propeller" in str(raised.value.remedy)
    # Both names, as the second selects the first.
    assert ("CONFIG_RELOCATABLE=y" in lines) == ("EFI_STUB" in str(raised.value.remedy))


def test_other_configurations_are_taken() -> None:
    rewriting.check_configuration(["# CONFIG_RELOCATABLE is not set", "CONFIG_SMP=y"], "x86-64")


@pytest.mark.parametrize(
    ("lines", "taken"),
    [
        ([], False),
        (["# CONFIG_RELOCATABLE is not set"], False),
        (["# CONFIG_EFI_STUB is not set"], False),
        (["# CONFIG_RELOCATABLE is not set", "# CONFIG_EFI_STUB is not set"], True),
        (["# CONFIG_RELOCATABLE is not set", "# CONFIG_EFI is not set"], True),
        (["# base: allnoconfig"], True),
        (["# base: allnoconfig", "CONFIG_RELOCATABLE=y"], False),
        (["# base: allnoconfig", "CONFIG_EFI=y", "CONFIG_EFI_STUB=y"], False),
        (["# base: allnoconfig", "CONFIG_KASAN=y"], False),
    ],
)
def test_what_a_configuration_becomes_is_known_before_kconfig_is_asked(
    tmp_path: Path, lines: list[str], taken: bool
) -> None:
    config = tmp_path / "my.config"
    config.write_text("".join(f"{line}\n" for line in lines))
    with nullcontext() if taken else pytest.raises(InputError, match=r"RELOCATABLE|KASAN"):
        rewriting.check_wanted(kconfig.merge([config]), "x86-64")


@pytest.mark.parametrize("data", [b"", b"\x7fELF" + bytes(60), b"MZ" * 64])
def test_a_file_that_is_no_kernel_is_refused(data: bytes) -> None:
    with pytest.raises(WorkError, match="vmlinux"):
        Vmlinux(data)


def test_a_profile_names_the_functions_of_both_sides() -> None:
    counts = "1 a/1 4 1 b 0 0 7\n0 [unknown] 0 1 c 3 0 1\nno_lbr\n"
    assert rewriting.profiled_functions(counts) == {"a/1", "b", "c"}


@NEEDS_BOLT
def test_what_was_recorded_inside_patched_code_is_left_out_of_the_profile(tmp_path: Path) -> None:
    kernel, tables = rewriting.check_kernel(link(tmp_path, CLANG, LINKER))
    # The call of the retpoline has 5 bytes; the kernel makes one of 3 of it, and a NOP.
    lines = [f"1 copy {at:x} 1 copy 16 0 7\n" for at in range(0xA, 0x10)]
    kept = list(rewriting.outside_patched("".join(lines), kernel, tables))
    assert kept == [lines[0], lines[-1]]
    others = "0 [unknown] 0 1 copy 0 0 3\n1 nobody 4 1 copy c 0 1\nno_lbr\n"
    assert list(rewriting.outside_patched(others, kernel, tables)) == [
        "0 [unknown] 0 1 copy 0 0 3\n",
        "no_lbr\n",
    ]


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("0f1f00", "0f1f00", True),
        ("0f1f00", "909090", False),
        # It is 0x100 bytes further on, so the distance of what it calls is smaller by as many.
        ("e801020000", "e801010000", True),
        ("e801020000", "e801020000", False),
        ("e801020000", "e901010000", False),
        # Another part of the function may have moved by more or less.
        ("e901000000", "e9ff000000", True),
        ("e9", "e9", True),
        # The prefix of a retpoline's call only makes space.
        ("2ee801020000", "e802010000c3", True),
        ("2ee801020000", "e801010000c3", False),
        ("2e0f01000000", "0f01000000c3", False),
        ("ff1501020000", "ff1501010000", True),
        ("ff1501020000", "ff1501020000", False),
        ("ff1501020000c3", "ff150101000090", False),
    ],
)
def test_moved_code_is_the_same_and_leads_to_the_same(old: str, new: str, same: bool) -> None:
    inside = range(-0x80, 0x80)
    assert rewriting.same_code(bytes.fromhex(old), bytes.fromhex(new), 0x100, inside) is same
