"""Whether a tree can be built, and with which algorithms."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mepof import arch
from mepof.adapter.fit import AlgorithmFit, Fit, Reason, check_fit
from mepof.algorithm.protocol import ALGORITHMS
from mepof.errors import InputError
from mepof.kernel.options import options
from mepof.toolchain.clang import Clang
from mepof.toolchain.gcc import Gcc

from .fitting import TREE, Present

X86 = arch.get("x86-64")


def looked_at(tree: Path, toolchain: Clang, *names: str) -> Fit:
    return check_fit(tree, X86, toolchain, ("slim",), names or ALGORITHMS.names())


def algorithm(fit: Fit, name: str) -> AlgorithmFit:
    return next(each for each in fit.algorithms if each.algorithm == name)


def test_a_tree_that_takes_every_edit_fits(tree: Path, toolchain: Clang) -> None:
    fit = looked_at(tree, toolchain)
    able = {n for n in ALGORITHMS.names() if ALGORITHMS.get(n).requires <= toolchain.capabilities}
    assert {each.algorithm for each in fit.algorithms if fit.builds(each)} == able
    (other,) = algorithm(fit, "gcc-pgo").reasons
    assert (other.message, other.nearest) == (
        "it needs gcc, and the toolchain is clang-22",
        "choose it: --toolchain gcc",
    )
    assert not any(each.modules for each in fit.algorithms)
    assert (fit.min_compiler, str(fit.version)) == ("13.0.1", "6.12.7")


def test_an_edit_that_does_not_fit_names_the_file_and_the_nearest_location(
    tree: Path, toolchain: Clang
) -> None:
    linker = tree / "include/asm-generic/vmlinux.lds.h"
    linker.write_text(linker.read_text().replace("DATA_DATA", "DATA_DATA_SECTIONS"))
    fit = looked_at(tree, toolchain)
    (reason,) = algorithm(fit, "pgo").reasons
    assert reason.message.endswith("no DATA_DATA in include/asm-generic/vmlinux.lds.h")
    shown = "include/asm-generic/vmlinux.lds.h:1: #define DATA_DATA_SECTIONS \\"
    assert reason.nearest == f"the nearest is {shown}"
    assert not fit.builds(algorithm(fit, "pgo")) and fit.builds(algorithm(fit, "autofdo"))


@pytest.mark.parametrize(
    ("name", "text", "nearest"),
    [
        ("tools/objtool/uaccess.c", TREE["tools/objtool/check.c"], "it has moved to "),
        ("tools/objtool/check.c", "const char *uaccess_safe_builtin = 0;\n", "written otherwise"),
    ],
)
def test_a_definition_that_moved_or_changed_is_found(
    tree: Path, toolchain: Clang, name: str, text: str, nearest: str
) -> None:
    (tree / "tools/objtool/check.c").write_text("int main;\n")
    (tree / name).write_text(text)
    (reason,) = algorithm(looked_at(tree, toolchain), "pgo").reasons
    assert reason.nearest is not None and nearest in reason.nearest
    assert f"{name}:1: " in reason.nearest


def test_a_file_that_moved_is_found_and_concerns_modules_alone(
    tree: Path, toolchain: Clang
) -> None:
    # As it was before 5.19, and as it never was.
    before, never = tree / "kernel/module.c", tree / "kernel/loader.c"
    (tree / "kernel/module/main.c").rename(before)
    assert algorithm(looked_at(tree, toolchain), "pgo").modules == ()
    before.rename(never)
    fit = looked_at(tree, toolchain)
    pgo = algorithm(fit, "pgo")
    assert fit.builds(pgo)
    assert [reason.nearest for reason in pgo.modules] == [
        None,
        "it has moved to kernel/loader.c:1: static int find_module_sections(int a)",
    ]


def test_options_that_the_kernel_does_not_have_are_named(tree: Path, toolchain: Clang) -> None:
    text = (tree / "Kconfig").read_text()
    (tree / "Kconfig").write_text(text.replace("config EPOLL\n", "config EPOLLED\n"))
    fit = looked_at(tree, toolchain)
    (reason,) = fit.config
    assert reason.message.startswith("the kernel has no CONFIG_EPOLL (")
    assert reason.nearest == "the nearest is CONFIG_EPOLLED"
    assert not any(fit.builds(each) for each in fit.algorithms)
    assert "no CONFIG_LTO_CLANG_THIN" in fit.options["ThinLTO"][0].message


def test_a_file_of_certificates_that_is_not_there_is_named_before_a_build(
    tree: Path, toolchain: Clang, tmp_path: Path
) -> None:
    config = tmp_path / "my.config"

    def reasons(name: str) -> tuple[Reason, ...]:
        config.write_text(f'# base: allnoconfig\nCONFIG_SYSTEM_TRUSTED_KEYS="{name}"\n')
        found = check_fit(tree, arch.get("x86-64"), toolchain, (str(config),), ["pgo"]).config
        return tuple(each for each in found if "names" in each.message)

    (reason,) = reasons("debian/canonical-certs.pem")
    assert reason.message == (
        "CONFIG_SYSTEM_TRUSTED_KEYS names debian/canonical-certs.pem, which is not in the tree"
    )
    assert reason.nearest is not None and 'write CONFIG_SYSTEM_TRUSTED_KEYS=""' in reason.nearest
    (tree / "debian").mkdir()
    (tree / "debian/canonical-certs.pem").touch()
    assert reasons("debian/canonical-certs.pem") == reasons("") == ()


def test_the_configuration_of_another_kernel_is_to_be_reduced_by_kconfig(
    tree: Path, toolchain: Clang, tmp_path: Path
) -> None:
    def reasons(number: int) -> tuple[Reason, ...]:
        config = tmp_path / "my.config"
        lines = "".join(f"CONFIG_Z{each:02}=y\n" for each in range(number))
        config.write_text(f"# base: allnoconfig\n{lines}")
        return check_fit(tree, arch.get("x86-64"), toolchain, (str(config),), ["pgo"]).config

    assert [each.message.partition(" (")[0] for each in reasons(20)] == [
        f"the kernel has no CONFIG_Z{each:02}" for each in range(20)
    ]
    first, *others = reasons(21)
    assert first.message == "the kernel does not have 21 of the options" and len(others) == 21
    assert first.nearest is not None and "`set dropped note.`" in first.nearest


def test_many_options_of_ours_that_a_kernel_does_not_have_want_another_configuration(
    tree: Path, toolchain: Clang
) -> None:
    for path in tree.rglob("Kconfig*"):
        path.write_text("")
    first, *_ = check_fit(tree, X86, toolchain, ("slim",), ["pgo"]).config
    assert first.message.endswith(" of the options")
    assert first.nearest == "choose a configuration for this kernel"


def test_options_that_a_kernel_does_not_have_may_be_noted(
    tree: Path, toolchain: Clang, tmp_path: Path
) -> None:
    config = tmp_path / "my.config"
    lines = "".join(f"CONFIG_Z{each:02}=y\n" for each in range(30))
    config.write_text(f"# base: allnoconfig\n{lines}")
    fit = check_fit(tree, arch.get("x86-64"), toolchain, (str(config),), ["pgo"], note_dropped=True)
    assert fit.config == ()
    (note,) = (each for each in fit.notes if "options" in each.message)
    assert note.message == (
        "the kernel does not have 30 of the options: "
        "CONFIG_Z00, CONFIG_Z01, CONFIG_Z02, CONFIG_Z03 and 26 more"
    )


@pytest.mark.parametrize("noted", [True, False])
def test_a_value_of_the_wrong_kind_is_named(tree: Path, toolchain: Clang, noted: bool) -> None:
    (tree / "Kconfig").write_text((tree / "Kconfig").read_text() + 'config HZ\n\tint "Ticks"\n')
    own = tree.with_name("own.config")
    own.write_text('CONFIG_HZ="250"\n')
    fit = check_fit(tree, X86, toolchain, ("slim", str(own)), (), note_dropped=noted)
    wrong = Reason(f'CONFIG_HZ takes a decimal number, not "250" ({own}:1)')
    assert fit.config == (() if noted else (wrong,))
    assert (wrong in fit.notes) == noted


def test_a_recompilation_option_of_another_compiler_is_not_listed(
    tree: Path, toolchain: Clang, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_gcc = {name for name, o in options().items() if "gcc-instrumentation" in o.requires}
    of_clang = {name for name, o in options().items() if o.requires & toolchain.capabilities}
    assert "NoValues" in of_gcc and "ThinLTO" in of_clang
    # The tree has no option of any of them.
    assert not of_gcc & looked_at(tree, toolchain).options.keys()
    gcc = Gcc("-12")
    monkeypatch.setattr(Gcc, "version_for", lambda self, arch: "12.2.0")
    assert not of_clang & check_fit(tree, X86, gcc, ("slim",), ()).options.keys()
    # One that is too old for an option is not another.
    monkeypatch.setitem(Clang.description.capabilities, "llvm-lto", 19)
    monkeypatch.setattr(Present, "version_for", lambda self, arch: "16.0.6")
    (reason, *_) = looked_at(tree, Present("-16")).options["ThinLTO"]
    assert reason.message == "it needs clang 19 or later, and clang-16 is 16.0.6"


def test_an_option_that_may_be_absent_is_not_missed(tree: Path, toolchain: Clang) -> None:
    text = (tree / "Kconfig").read_text()
    assert "config RANDOMIZE_KSTACK_OFFSET\n" in text
    (tree / "Kconfig").write_text(text.replace("RANDOMIZE_KSTACK_OFFSET", "OTHER"))
    assert looked_at(tree, toolchain).config == ()


def test_programs_that_an_option_needs_are_missed(
    tree: Path, toolchain: Clang, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "Kconfig").write_text((tree / "Kconfig").read_text() + "config RUST\n\tbool\n")
    own = tree.with_name("own.config")
    own.write_text("CONFIG_RUST=y\n")
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "bindgen" else f"/{name}")
    (reason,) = check_fit(tree, X86, toolchain, ("slim", str(own)), ()).config
    assert reason.message == "CONFIG_RUST needs bindgen, which is not installed"


def test_what_files_of_the_tree_below_a_configuration_need_is_noted(
    tree: Path, toolchain: Clang, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = tree / "arch/x86/configs"
    (configs / "vendor").mkdir(parents=True)
    (configs / "gki_defconfig").write_text(
        'CONFIG_DEBUG_INFO_BTF=y\nCONFIG_UNUSED_KSYMS_WHITELIST="abi_symbollist.raw"\n'
    )
    (configs / "vendor/x.config").write_text("CONFIG_BLK_DEV_INITRD=y\n")
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "pahole" else f"/{name}")
    own = tree.with_name("own.config")

    def notes(lines: str) -> list[str]:
        own.write_text(f"# base: gki_defconfig vendor/x.config\n{lines}")
        fit = check_fit(tree, X86, toolchain, (str(own),), ())
        return [n.message for n in fit.notes if "QEMU" not in n.message]

    where = "(gki_defconfig vendor/x.config)"
    assert notes("") == [
        f"CONFIG_DEBUG_INFO_BTF needs pahole, which is not installed {where}",
        f"CONFIG_UNUSED_KSYMS_WHITELIST names abi_symbollist.raw, which is not in the tree {where}",
    ]
    off = '# CONFIG_DEBUG_INFO_BTF is not set\nCONFIG_UNUSED_KSYMS_WHITELIST=""\n'
    assert notes(off) == []


def test_an_algorithm_needs_its_own_options(tree: Path, toolchain: Clang) -> None:
    text = (tree / "Kconfig").read_text()
    (tree / "Kconfig").write_text(text.replace("DEBUG_FS\n", "DEBUGFS\n"))
    (reason,) = algorithm(looked_at(tree, toolchain), "pgo").reasons
    assert reason.message.startswith("the kernel has no CONFIG_DEBUG_FS")


def test_an_algorithm_may_not_fit_the_configuration_or_the_architecture(
    tree: Path, toolchain: Clang
) -> None:
    own = tree.with_name("own.config")
    own.write_text("CONFIG_RELOCATABLE=y\n")
    relocatable = check_fit(tree, X86, toolchain, ("slim", str(own)), ["bolt"])
    (reason,) = algorithm(relocatable, "bolt").reasons
    assert "CONFIG_RELOCATABLE" in reason.message
    assert reason.nearest is not None and "# CONFIG_EFI_STUB is not set" in reason.nearest
    other = check_fit(tree, arch.get("arm64"), toolchain, ("slim",), ["bolt"])
    assert "x86-64 only" in algorithm(other, "bolt").reasons[0].message


@pytest.mark.parametrize(
    ("release", "fits"), [("6 0", False), ("6 1", True), ("7 0", True), ("7 1", False)]
)
def test_an_algorithm_may_not_fit_the_release(
    tree: Path, toolchain: Clang, release: str, fits: bool
) -> None:
    version, patchlevel = release.split()
    stated = f"VERSION = {version}\nPATCHLEVEL = {patchlevel}\nSUBLEVEL = 4\n"
    (tree / "Makefile").write_text(stated)
    fit = looked_at(tree, toolchain, "bolt", "propeller")
    assert fit.builds(algorithm(fit, "bolt")) == fits
    assert fit.builds(algorithm(fit, "propeller"))
    if not fits:
        (reason,) = algorithm(fit, "bolt").reasons
        assert f"Linux {version}.{patchlevel}.4" in reason.message
        assert "6.1 to 7.0" in reason.message


def test_a_compiler_that_is_too_old_for_the_kernel_is_named(tree: Path, toolchain: Clang) -> None:
    (tree / "scripts/min-tool-version.sh").write_text("echo 23.0.0\n")
    fit = looked_at(tree, toolchain)
    (reason,) = fit.reasons
    assert reason.message == "the kernel needs clang 23.0.0 or later, and clang-22 is 22.1.8"
    assert not fit.builds(algorithm(fit, "pgo"))


def test_an_algorithm_that_is_newer_than_the_compiler_says_which_it_needs(
    tree: Path, toolchain: Clang, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Present, "version_for", lambda self, arch: "16.0.6")
    fit = looked_at(tree, Present("-16"))
    assert fit.builds(algorithm(fit, "pgo"))
    (reason,) = algorithm(fit, "propeller").reasons
    assert reason.message == "it needs clang 19 or later, and clang-16 is 16.0.6"


def test_the_minimum_of_old_kernels_is_in_a_header(tree: Path, toolchain: Clang) -> None:
    (tree / "scripts/min-tool-version.sh").unlink()
    assert looked_at(tree, toolchain, "pgo").min_compiler is None
    header = tree / "include/linux/compiler-clang.h"
    header.parent.mkdir()
    header.write_text("#if CLANG_VERSION < 100001\n# error Sorry\n#endif\n")
    assert looked_at(tree, toolchain, "pgo").min_compiler == "10.0.1"


def test_an_architecture_that_the_kernel_does_not_have_is_named(
    tree: Path, toolchain: Clang
) -> None:
    (tree / "arch/x86").rename(tree / "arch/riscv")
    (reason,) = looked_at(tree, toolchain).reasons
    assert reason.message == "the kernel has no architecture arch/x86"
    assert reason.nearest == "it has riscv"


def test_an_architecture_that_the_toolchain_builds_no_kernels_for_is_refused(
    tree: Path, toolchain: Clang
) -> None:
    (tree / "arch/arm").mkdir()
    (reason,) = check_fit(tree, arch.get("arm"), toolchain, ("slim",), ["pgo"]).reasons
    assert reason.message == "clang-22 does not build kernels for arm"
    assert reason.nearest == "choose gcc"


def test_a_link_out_of_the_tree_to_nothing_is_named(tree: Path, toolchain: Clang) -> None:
    (tree / "techpack").symlink_to("../vendor")
    (tree / "kernel/null").symlink_to("/dev/null")
    (tree / "kernel/absent.c").symlink_to("none.c")
    (tree / "source").symlink_to(tree)  # as kbuild leaves it
    fit = check_fit(tree, X86, toolchain, ("slim",), ["pgo"], in_place=True)
    (note,) = fit.notes
    assert note.message == (
        "the link techpack leads out of the tree to ../vendor, which does not exist"
    )
    assert note.nearest == "restore what the link leads to, or remove it"
    assert fit.builds(algorithm(fit, "pgo")), "nothing may read it"


def test_what_a_link_out_of_a_directory_leads_to_is_part_of_it_and_of_no_other_source(
    tree: Path, toolchain: Clang
) -> None:
    vendor, own = tree.with_name("vendor"), tree.with_name("own.config")
    (vendor / "audio").mkdir(parents=True)
    (vendor / "audio/Kconfig").write_text("config AUDIO\n")
    (vendor / "audio/back").symlink_to("../audio")
    (tree / "techpack").symlink_to("../vendor")
    own.write_text("CONFIG_AUDIO=y\n")
    config = ("slim", str(own))
    fit = check_fit(tree, X86, toolchain, config, ["pgo"], in_place=True)
    assert (fit.config, fit.notes) == ((), ())
    (note,) = check_fit(tree, X86, toolchain, config, ["pgo"]).notes
    assert note.message == (
        "the link techpack leads out of the tree to ../vendor, which is not part of the source"
    )
    assert str(note.nearest).startswith("name a directory with the tree and what the link leads to")


def test_a_link_to_a_directory_around_the_tree_does_not_fit(tree: Path, toolchain: Clang) -> None:
    (tree / "kernel/up").symlink_to("../..")
    fit = check_fit(tree, X86, toolchain, ("slim",), ["pgo"], in_place=True)
    (reason,) = fit.reasons
    assert f"the link {tree}/kernel/up points to {tree.parent}" in reason.message
    assert not fit.builds(algorithm(fit, "pgo"))


@pytest.mark.parametrize(
    ("name", "lines", "lacks"),
    [
        ("x86-64", "CONFIG_VIRTIO_MMIO=y\nCONFIG_VIRTIO_MMIO_CMDLINE_DEVICES=y", ""),
        ("x86-64", "CONFIG_VIRTIO_PCI=y", ""),
        ("x86-64", "CONFIG_VIRTIO_PCI=y\n# CONFIG_ACPI is not set", "ACPI"),
        ("x86-64", "CONFIG_VIRTIO_MMIO=y", "VIRTIO_MMIO_CMDLINE_DEVICES"),
        ("x86-64", "CONFIG_VIRTIO_PCI=m\nCONFIG_VIRTIO_CONSOLE=m", ""),
        ("x86-64", "CONFIG_VIRTIO_PCI=y\n# CONFIG_VIRTIO_CONSOLE is not set", "VIRTIO_CONSOLE"),
        ("x86-64", "# base: allnoconfig\nCONFIG_VIRTIO_PCI=y", "BLK_DEV_INITRD, ACPI"),
        ("arm64", "CONFIG_VIRTIO_MMIO=y", ""),
        ("arm64", "CONFIG_VIRTIO_PCI=y", "VIRTIO_MMIO"),
        ("arm64", "# CONFIG_BLK_DEV_INITRD is not set", "BLK_DEV_INITRD, VIRTIO_MMIO"),
        ("arm64", "# base: tinyconfig", ""),
        ("um", "", ""),
    ],
)
def test_a_kernel_that_the_emulator_would_not_reach_is_noted(
    tree: Path, toolchain: Clang, name: str, lines: str, lacks: str
) -> None:
    record, own = arch.get(name), tree.with_name("own.config")
    configs = tree / "arch" / record.source / "configs"
    configs.mkdir(parents=True)
    (configs / "defconfig").write_text("CONFIG_BLK_DEV_INITRD=y\n")
    own.write_text(f"CONFIG_VIRTIO_CONSOLE=y\n{lines}\n")
    notes = check_fit(tree, record, toolchain, (str(own),), ()).notes
    said = [note.message.partition("it lacks ")[2].replace("CONFIG_", "") for note in notes]
    assert said == [", ".join(f"{each}=y" for each in lacks.split(", "))] * bool(lacks)


@pytest.mark.parametrize("config", [("slim",), ("server",), ("slim", "suites")])
def test_our_own_configurations_are_made_for_the_emulator(
    tree: Path, toolchain: Clang, config: tuple[str, ...]
) -> None:
    for name in ("x86-64", "arm64"):
        configs = tree / "arch" / arch.get(name).source / "configs"
        configs.mkdir(parents=True, exist_ok=True)
        (configs / "defconfig").write_text("CONFIG_BLK_DEV_INITRD=y\n")
        assert check_fit(tree, arch.get(name), toolchain, config, ()).notes == ()


def test_what_is_not_a_kernel_is_an_error(tmp_path: Path, toolchain: Clang) -> None:
    with pytest.raises(InputError, match="is not a kernel source tree"):
        looked_at(tmp_path, toolchain)
    with pytest.raises(InputError, match="unknown config `slimm`"):
        (tmp_path / "Kbuild").touch()
        (tmp_path / "Makefile").write_text(TREE["Makefile"])
        check_fit(tmp_path, X86, toolchain, ("slimm",), ["pgo"])


def test_a_configuration_of_another_architecture_is_an_error(
    tree: Path, tmp_path: Path, toolchain: Clang
) -> None:
    own = tmp_path / "own.config"
    own.write_text("# Linux/arm64 6.12.1 Kernel Configuration\n")
    with pytest.raises(InputError, match=r"own\.config is a configuration for arm64"):
        check_fit(tree, X86, toolchain, (str(own),), ())
    own.write_bytes(b"#\r\n# Linux/arm64 6.12.1 Kernel Configuration\r\n#\r\n")
    with pytest.raises(InputError, match=r"own\.config is a configuration for arm64"):
        check_fit(tree, X86, toolchain, (str(own),), ())
    with pytest.raises(InputError, match=r"pages-16k\.config is a configuration for arm64"):
        check_fit(tree, X86, toolchain, ("slim", "pages-16k"), ())
    own.write_text("# arch: x86-64, arm  # ours\n")
    check_fit(tree, X86, toolchain, (str(own),), ())
    several = r"server\.config is a configuration for x86_64, arm64, arm, and the kernel is for um"
    with pytest.raises(InputError, match=several):
        check_fit(tree, arch.get("um"), toolchain, ("server",), ())


def test_unfinished_work_on_a_tree_is_noted(tree: Path, toolchain: Clang) -> None:
    (tree / "patches").mkdir()
    (tree / "patches/series").write_text("first.patch\n")
    (note,) = looked_at(tree, toolchain).notes
    assert note.message.startswith("1 of the 1 patches of patches/series are not in")
    assert "quilt push -a" in str(note.nearest)


def test_an_option_of_a_file_that_quilt_keeps_is_none_of_the_kernel(
    tree: Path, toolchain: Clang, tmp_path: Path
) -> None:
    (tree / ".pc/first.patch").mkdir(parents=True)
    (tree / ".pc/first.patch/Kconfig").write_text("config REMOVED\n\tbool\n")
    own = tmp_path / "own.config"
    own.write_text("CONFIG_REMOVED=y\n")
    reasons = check_fit(tree, X86, toolchain, (str(own),), ()).config
    assert any("has no CONFIG_REMOVED" in reason.message for reason in reasons)


def test_a_configuration_of_ours_has_the_options_of_its_overlay(
    tree: Path, toolchain: Clang
) -> None:
    (without,) = {
        reason.message
        for reason in check_fit(tree, X86, toolchain, ("kload",), ()).config
        if "overlay" in reason.message
    }
    assert without == "overlay `kload` does not fit this tree: no init/Kconfig"
    (tree / "init").mkdir()
    (tree / "init/Kconfig").touch()
    reasons = check_fit(tree, X86, toolchain, ("kload",), ()).config
    assert reasons  # what it needs beyond slim
    assert not any("KLOAD" in reason.message or "overlay" in reason.message for reason in reasons)
