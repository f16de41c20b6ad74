"""The kernel builder, on a kernel in miniature."""

from __future__ import annotations

import json
import os
import shutil
import struct
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from writers.elf import ALLOC, CODE, elf64
from writers.mini_kernel import SUFFIX, VERSION, forget_tools, write_tree

from mepof.algorithm.protocol import ALGORITHMS, EXECUTED_OBJECTS, BuildAddition, Round, Use
from mepof.errors import EnvironmentLack, InputError, Interrupted, WorkError
from mepof.kernel import kbuild
from mepof.kernel.build_spec import PROFILES, BuildSpec, FileFlags
from mepof.kernel.description import BuildDescription, Origin
from mepof.kernel.modules import Modules
from mepof.kernel.objects import functions_in
from mepof.process import run
from mepof.toolchain import clang
from mepof.toolchain.clang import Clang
from mepof.toolchain.named import select
from mepof.toolchain.protocol import Tools

from .conftest import SPEC, Bench


def state(root: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path): (
            path.stat().st_mtime_ns,
            path.stat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [root, *root.rglob("*")]
    }


def test_a_build_leaves_its_files_and_what_is_known_of_them(bench: Bench) -> None:
    output = bench.build("CONFIG_NET=y", "CONFIG_INET=y")
    assert sorted(path.name for path in output.iterdir()) == [
        *("System.map", "build.json", "config", "kernel", "objects.json", "vmlinux"),
    ]
    assert "CONFIG_INET=y" in (output / "config").read_text()
    known = json.loads((output / "build.json").read_text())
    assert known["version"] == "6.12.7"
    assert known["arch"] == "x86-64"
    assert known["size_bytes"] == {"text": 0x40, "image": (output / "kernel").stat().st_size}
    assert known["sections"] == {".text": 0x4000, ".init.text": 0x100}
    assert known["cflags"] == ["-O3", "-fmini"]
    assert known["overlays"] == ["flags"]


def test_flags_go_to_every_file_but_the_excluded_ones(bench: Bench) -> None:
    bench.build()
    objects = bench.paths().work / "tree/build"
    assert "-Wall -O3 -fmini" in (objects / "kernel/b.o").read_text()
    assert "-Wall -c" in (objects / "kernel/bounds.o").read_text()
    assert "-fmini" not in (objects / "arch/x86/boot/c.o").read_text()


def test_two_builds_in_two_directories_are_the_same(bench: Bench) -> None:
    first, second = bench.build(name="one"), bench.build(name="two")
    for name in ("kernel", "vmlinux", "config", "build.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_the_functions_of_every_object_of_a_c_source_are_known(bench: Bench) -> None:
    assert functions_in(bench.build()) == {
        "arch/x86/boot/c.o": [],
        "init/a.o": ["start", "stop"],
        "kernel/b.o": ["work"],
        "kernel/bounds.o": [],
    }


def test_nm_is_not_asked_for_the_tools_that_the_kernel_builds_for_itself(bench: Bench) -> None:
    tool = bench.paths().work / "tree/build/scripts/tool.o"
    bench.build()
    tool.parent.mkdir(exist_ok=True)
    tool.write_text("defines main\n")
    tool.with_name(".tool.o.cmd").write_text("source_scripts/tool.o := ../scripts/tool.c\n")
    assert tool.relative_to(tool.parents[1]).as_posix() not in functions_in(bench.build())
    assert tool.is_file()


def test_the_functions_of_objects_in_rust_are_known(bench: Bench) -> None:
    objects = bench.paths().work / "tree/build"
    bench.build()
    (objects / "rust").mkdir()
    (objects / "rust/core.o").write_text("defines _RNv4core3len\n")
    command = "source_rust/core.o := /usr/lib/rustlib/src/rust/library/core/src/lib.rs\n"
    (objects / "rust/.core.o.cmd").write_text(command)
    assert functions_in(bench.build())["rust/core.o"] == ["_RNv4core3len"]


def test_modules_are_built_listed_and_copied_where_the_configuration_has_them(
    bench: Bench,
) -> None:
    output = bench.build("CONFIG_MODULES=y", "CONFIG_DRIVER=m")
    assert (output / "modules/m.ko").read_bytes() == (bench.tree / "module.elf").read_bytes()
    found = Modules.read(output)
    assert [(m.name, m.path, m.needs, m.text) for m in found.modules] == [
        ("m", "drivers/m.ko", (), 0x20),
    ]
    # Their files use profiles and flags like all others, so the search knows them.
    assert functions_in(output)["drivers/m.o"] == ["drive"]
    objects = bench.paths().work / "tree/build"
    assert "-Wall -O3 -fmini" in (objects / "drivers/m.o").read_text()
    assert bench.seen[-1][0] == bench.seen[-1][1] and "drivers/m.o" in {f for *_, f in bench.seen}


def test_a_configuration_with_modules_of_which_none_is_built_has_none(bench: Bench) -> None:
    output = bench.build("CONFIG_MODULES=y")
    assert Modules.find(output) is None
    assert not (output / "modules").exists()


def test_a_module_with_a_broken_table_does_not_pass(bench: Bench) -> None:
    table = elf64([("__ex_table", 0, 0, ALLOC)], {}, contents={"__ex_table": bytes(5)})
    (bench.tree / "module.elf").write_bytes(table)
    with pytest.raises(WorkError) as raised:
        bench.build("CONFIG_MODULES=y", "CONFIG_DRIVER=m")
    assert raised.value.message == (
        "a module would not work: drivers/m.ko: the exception table ends within an entry"
    )


def test_a_build_description_holds_no_directory_of_this_machine(bench: Bench) -> None:
    spec = with_profile(bench, "counts")
    output = bench.build(spec=spec)
    for name in ("build.json", "objects.json"):
        assert str(bench.root) not in (output / name).read_text()
    known = json.loads((output / "build.json").read_text())
    assert known["cflags"] == [f"-fprofile-use={PROFILES}/kernel.profdata"]


# --- profiles, and flags of single files


def with_profile(bench: Bench, text: str) -> BuildSpec:
    """A build that uses a profile with this text."""
    (bench.root / "given.profdata").write_text(text)
    return replace(
        SPEC,
        cflags=(f"-fprofile-use={PROFILES}/kernel.profdata",),
        profiles={"kernel.profdata": bench.root / "given.profdata"},
    )


def command_of(bench: Bench, name: str, build: str = "one") -> str:
    return (bench.paths(build).work / "tree/build" / name).read_text().partition("\n")[0]


def test_the_path_of_a_profile_names_its_contents(bench: Bench) -> None:
    paths = []
    for number, text in enumerate(("counts", "counts", "others")):
        bench.build(spec=with_profile(bench, text), name=str(number))
        (flag,) = (
            word
            for word in command_of(bench, "init/a.o", str(number)).split()
            if word.startswith("-fprofile-use=")
        )
        path = Path(flag.removeprefix("-fprofile-use="))
        assert path.name == "kernel.profdata"
        # The compiler runs where the objects are.
        assert (bench.paths(str(number)).work / "tree/build" / path).read_text() == text
        paths.append(path)
    assert paths[0] == paths[1] != paths[2]


def test_another_profile_rebuilds_the_files_that_use_it(bench: Bench) -> None:
    bench.build(spec=with_profile(bench, "counts"))
    bench.build(spec=with_profile(bench, "counts"))
    assert bench.seen == []
    bench.build(spec=with_profile(bench, "others"))
    assert [file for _, _, file in bench.seen] == ["init/a.o", "kernel/b.o"]


def test_flags_of_single_files_reach_no_other(bench: Bench) -> None:
    hot = bench.root / "hot"
    hot.write_text("kernel/b.o\nkernel/bounds.o\nkernel/absent.o\n")
    spec = replace(
        SPEC,
        selected=(
            FileFlags(hot, ("-flayout",)),
            FileFlags(("init/a.o", "arch/x86/boot/c.o"), ("-fone", "-ftwo")),
            FileFlags((), ("-fnone",)),
        ),
    )
    bench.build(spec=spec)
    assert " -Wall -O3 -fmini -fone -ftwo -c" in command_of(bench, "init/a.o")
    # After all other flags, so that they win.
    assert " -Wall -O3 -fmini -flayout -c" in command_of(bench, "kernel/b.o")
    for excluded in ("kernel/bounds.o", "arch/x86/boot/c.o"):
        assert " -Wall -c" in command_of(bench, excluded)


def test_flags_of_every_file_are_those_of_makes_pattern(bench: Bench) -> None:
    bench.build(spec=replace(SPEC, selected=(FileFlags(("%",), ("-fno-profile",)),)))
    for name in ("init/a.o", "kernel/b.o"):
        assert "-fno-profile" in command_of(bench, name)
    assert "-fno-profile" not in command_of(bench, "kernel/bounds.o")


def test_other_flags_of_single_files_rebuild_only_these(bench: Bench) -> None:
    def opted_out(*names: str) -> list[str]:
        bench.build(spec=replace(SPEC, selected=(FileFlags(names, ("-fno-profile",)),)))
        return [file for _, _, file in bench.seen]

    assert len(opted_out()) == 4
    assert opted_out("kernel/b.o") == ["kernel/b.o"]
    assert opted_out("kernel/b.o") == []
    assert opted_out("init/a.o") == ["init/a.o", "kernel/b.o"]
    assert opted_out() == ["init/a.o"]


def test_builds_with_profiles_and_flags_of_single_files_are_the_same_anywhere(
    bench: Bench,
) -> None:
    spec = replace(
        with_profile(bench, "counts"),
        selected=(FileFlags(("init/a.o",), (f"-flist={PROFILES}/kernel.profdata",)),),
    )
    first, second = bench.build(spec=spec, name="one"), bench.build(spec=spec, name="two")
    for path in first.iterdir():
        assert (second / path.name).read_bytes() == path.read_bytes()


# --- the algorithms' overlays


def spec_of(addition: BuildAddition) -> BuildSpec:
    return replace(
        SPEC,
        config_lines=addition.config_lines,
        cflags=(*SPEC.cflags, *addition.cflags),
        ldflags=addition.ldflags,
        variables=addition.variables,
        overlays=addition.overlays,
        selected=addition.selected,
        profiles=addition.profiles,
    )


def profile_of_a_stack(bench: Bench) -> Path:
    given = bench.root / "profile"
    given.mkdir(exist_ok=True)
    for name in ("kernel.afdo", "kernel.cc_profile", "kernel.ld_profile"):
        (given / name).write_text(name)
    (given / "kernel.hot_objects").write_text("kernel/b.o\n")
    return given


def test_autofdo_gives_its_flags_to_the_files_in_which_something_ran(bench: Bench) -> None:
    toolchain = select(f"clang{SUFFIX}")
    algorithm = ALGORITHMS.get("autofdo")
    plain = bench.build(name="plain")
    output = bench.build(spec=spec_of(algorithm.instrument(toolchain, Round())), name="profiled")
    # Another configuration would recompile every file.
    assert (output / "config").read_bytes() == (plain / "config").read_bytes()
    profiled = command_of(bench, "init/a.o", "profiled")
    assert "-fdebug-info-for-profiling" in profiled and " -gmlt" in profiled
    assert "-fprofile-sample-use" not in profiled
    profile = profile_of_a_stack(bench)
    (profile / EXECUTED_OBJECTS).write_text("init/a.o\n")
    use = algorithm.use(profile, Use(toolchain, True))
    bench.build(spec=spec_of(use), name="used")
    used = command_of(bench, "init/a.o", "used")
    (path,) = (w.partition("=")[2] for w in used.split() if w.startswith("-fprofile-sample-use="))
    objects = bench.paths("used").work / "tree/build"
    assert (objects / path).read_text() == "kernel.afdo"
    assert "-ffunction-sections -fsplit-machine-functions" in used
    for other in ("kernel/b.o", "kernel/bounds.o", "arch/x86/boot/c.o"):
        assert command_of(bench, other, "used") == command_of(bench, other, "plain")


def test_propeller_compiles_only_what_is_hot_with_other_flags(bench: Bench) -> None:
    toolchain = select(f"clang{SUFFIX}")
    below, algorithm = ALGORITHMS.get("autofdo"), ALGORITHMS.get("propeller")
    given = profile_of_a_stack(bench)
    stack = below.use(given, Use(toolchain, True))
    profiled = bench.build(
        spec=spec_of(stack + algorithm.instrument(toolchain, Round())), name="profiled"
    )
    used = spec_of(stack + algorithm.use(given, Use(toolchain, True)))
    bench.build(spec=replace(used, same_as=origin(profiled)), name="used")
    for name in ("init/a.o", "kernel/bounds.o", "arch/x86/boot/c.o"):
        assert command_of(bench, name, "used") == command_of(bench, name, "profiled")
    assert "-fbasic-block-address-map" in command_of(bench, "init/a.o", "used")
    (added,) = command_of(bench, "kernel/b.o", "used").split("-fbasic-block-sections=list=")[1:]
    path, *more = added.split()
    objects = bench.paths("used").work / "tree/build"
    assert (objects / path).read_text() == "kernel.cc_profile"
    assert more[0] == "-ffunction-sections"


# --- builds that must be equal to another


def origin(output: Path) -> Origin:
    return BuildDescription.read(output).origin


def test_a_build_equal_to_another_may_differ_in_layout(
    bench: Bench,
) -> None:
    first = origin(bench.build("CONFIG_NET=y"))
    spec = replace(
        SPEC,
        ldflags=("--symbol-ordering-file=order",),
        selected=(FileFlags(("init/a.o",), ("-flayout",), layout=True),),
        same_as=first,
    )
    assert origin(bench.build("CONFIG_NET=y", spec=spec, name="two")) == first


def refused(bench: Bench, spec: BuildSpec, *lines: str) -> str:
    """What is said of a build that is not equal to another; nothing is compiled."""
    with pytest.raises(InputError, match="the profile belongs to another build") as caught:
        bench.build(*lines, spec=spec, name="two")
    assert caught.value.exit_status == 2
    assert bench.seen == []
    assert not list((bench.paths("two").work / "tree/build").rglob("*.o"))
    assert list(bench.paths("two").output.iterdir()) == []
    return caught.value.message.rpartition("different ")[2]


def test_a_build_that_must_be_equal_to_another_is_refused_with_what_differs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    equal = replace(SPEC, same_as=origin(bench.build()))
    assert refused(bench, equal, "CONFIG_NET=y") == "config"
    assert refused(bench, replace(equal, cflags=("-O2", "-fmini"))) == "flags"
    other = (FileFlags(("init/a.o",), ("-fmini",)),)
    assert refused(bench, replace(equal, selected=other)) == "flags"
    assert refused(bench, replace(equal, variables={"CLANG_AUTOFDO_PROFILE": "x"})) == "flags"
    bench.tree = bench.tree.rename(bench.root / "another-tree")
    shutil.rmtree(bench.paths("two").work)
    assert refused(bench, equal) == "source"
    assert refused(bench, equal, "CONFIG_NET=y") == "source, config"


def test_a_build_by_another_compiler_is_not_equal(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    equal = replace(SPEC, same_as=origin(bench.build()))
    compiler = bench.root / f"tools/clang{SUFFIX}"
    compiler.write_text(compiler.read_text().replace(VERSION, "22.1.9"))
    forget_tools()
    assert refused(bench, equal) == "compiler"


def test_the_compiler_of_a_build_is_the_one_for_its_architecture(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Clang, "version_for", lambda self, arch: "1.2" if arch else VERSION)
    assert origin(bench.build()).compiler == "1.2"


def test_a_build_by_another_profile_below_is_not_equal(bench: Bench) -> None:
    first = origin(bench.build(spec=with_profile(bench, "counts")))
    assert refused(bench, replace(with_profile(bench, "others"), same_as=first)) == "flags"
    again = replace(with_profile(bench, "counts"), same_as=first)
    shutil.rmtree(bench.paths("two").work)
    assert origin(bench.build(spec=again, name="two")) == first


# --- progress


def test_progress_counts_files_of_all_files(bench: Bench) -> None:
    bench.build()
    # The image has a file more than vmlinux, whose files make tells beforehand.
    assert bench.seen == [
        *((1, 3, "init/a.o"), (2, 3, "kernel/b.o"), (3, 3, "kernel/bounds.o")),
        (4, 4, "arch/x86/boot/c.o"),
    ]


def test_a_number_of_files_that_was_cut_off_by_a_crash_is_counted_again(bench: Bench) -> None:
    bench.build()
    (kept,) = (bench.root / "cache/files-to-compile").iterdir()
    assert kept.read_text() == "3"
    kept.write_text("")
    bench.build(name="two")
    assert bench.seen[0] == (1, 3, "init/a.o")
    assert kept.read_text() == "3"


@pytest.mark.parametrize("base", ["allnoconfig", "defconfig"])
def test_the_given_tree_is_never_written_to(bench: Bench, base: str) -> None:
    for path in [bench.tree, *bench.tree.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = state(bench.tree)
    first = bench.root / "first.config"
    first.write_text(f"# base: {base}\n")
    bench.build("CONFIG_NET=y", spec=replace(SPEC, fragments=(first,)))
    assert state(bench.tree) == before


def test_a_build_directory_in_the_tree_is_left_alone(bench: Bench) -> None:
    (bench.tree / "build").mkdir()
    (bench.tree / "build/.config").write_text("CONFIG_TLS=y\n")
    before = state(bench.tree)
    bench.build("CONFIG_NET=y")
    assert state(bench.tree) == before


def test_a_fragment_is_laid_over_the_defconfig(bench: Bench) -> None:
    (bench.root / "base.config").write_text("# base: defconfig\nCONFIG_TLS=y\n")
    paths = bench.paths()
    kbuild.build(
        replace(SPEC, fragments=(bench.root / "base.config",)),
        Tools(select(f"clang{SUFFIX}"), partial(run, log=paths.log)),
        paths,
        1,
        lambda done, total, file: None,
    )
    config = (paths.output / "config").read_text()
    assert "CONFIG_NET=y" in config and "CONFIG_TLS=y" in config and "CONFIG_CRYPTO=y" in config


def test_an_option_that_did_not_take_is_an_error_with_its_unmet_dependency(bench: Bench) -> None:
    with pytest.raises(WorkError) as caught:
        bench.build("CONFIG_INET=y")
    message = caught.value.message
    assert message.startswith("1 config option(s) did not take effect: CONFIG_INET=y")
    assert f"({bench.root}/mini.config:2): unmet dependency NET" in message
    assert "\n" not in message


def test_an_option_of_an_algorithm_that_did_not_take_is_an_error_too(bench: Bench) -> None:
    with pytest.raises(WorkError, match=r"CONFIG_INET=y \(set by mepof\): unmet dependency NET"):
        bench.build(spec=replace(SPEC, config_lines=("CONFIG_INET=y",)))


def test_a_file_that_does_not_compile_is_one_line_with_the_compilers_error(bench: Bench) -> None:
    (bench.tree / "kernel/b.c").write_text("BROKEN\n")
    with pytest.raises(WorkError) as caught:
        bench.build()
    complaint, _, object_built = caught.value.message.partition("; make: *** ")
    assert complaint == (
        "the kernel did not build: kernel/b.c:3:5: error: use of undeclared identifier 'x'"
    )
    # By which the search for what does not stand a profile knows where to begin.
    assert "kernel/b.o] Error 1" in object_built
    assert caught.value.remedy == f"see {bench.paths().log}"
    assert "In file included from" in bench.paths().log.read_text()


def test_a_failure_before_the_compilation_names_what_make_said(bench: Bench) -> None:
    (bench.tree / "prepare.txt").write_text("BROKEN\n")
    with pytest.raises(WorkError, match=r"did not build: make: \*\*\* \[Makefile:\d+: prepare\]"):
        bench.build()


def test_a_kconfig_file_that_is_missing_is_named(bench: Bench) -> None:
    says = 'drivers/Kconfig:246: can\'t open file \\"techpack/Kconfig\\"'
    makefile = bench.tree / "Makefile"
    failing = makefile.read_text().replace("@srctree=", f'@echo "{says}"; exit 1; srctree=')
    makefile.write_text(failing)
    with pytest.raises(WorkError, match=r'did not build: drivers/.*file "techpack/Kconfig"'):
        bench.build()


def test_a_syntax_error_in_the_trees_kconfig_is_an_error(bench: Bench) -> None:
    (bench.tree / "Kconfig").write_text("confyg NET\n")
    with pytest.raises(WorkError, match="did not build: make: "):
        bench.build()


def test_a_place_that_kbuild_cannot_build_in_is_an_error(bench: Bench) -> None:
    with pytest.raises(WorkError, match="cannot contain spaces or colons"):
        bench.build(name="a:b")


def test_a_kernel_that_would_not_survive_its_boot_is_not_built(bench: Bench) -> None:
    write_tree(bench.tree, (".text.split.", 0x9000, 0x10, CODE))
    with pytest.raises(WorkError, match=r"\.text\.split\. at 0x9000\.\.0x9010 lies in the memory"):
        bench.build()
    assert list(bench.paths().output.iterdir()) == []


def test_a_kernel_whose_tables_do_not_fit_its_text_is_not_built(bench: Bench) -> None:
    table = struct.pack("<iiI", 0x1000 - 0x6000, 0x9FFF0, 0)
    write_tree(bench.tree, ("__ex_table", 0x6000, 12, ALLOC), contents={"__ex_table": table})
    with pytest.raises(
        WorkError, match=r"the linked kernel would not boot: the exception table has a fixup"
    ):
        bench.build()
    assert list(bench.paths().output.iterdir()) == []


def test_an_interrupted_build_goes_on_where_it_was(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(bench.root / "fifo")
    monkeypatch.setenv("MINI_BLOCK", str(bench.root / "fifo"))
    cancel = threading.Event()
    with pytest.raises(Interrupted):
        bench.build(cancel=cancel, told=lambda file: cancel.set() if file != "init/a.o" else None)
    assert [file for _, _, file in bench.seen] == ["init/a.o", "kernel/b.o"]
    monkeypatch.delenv("MINI_BLOCK")
    interrupted = bench.build()
    assert bench.seen[0] == (1, 2, "kernel/b.o")
    for name, content in {
        path.name: path.read_bytes() for path in bench.build(name="two").iterdir()
    }.items():
        assert (interrupted / name).read_bytes() == content


def test_the_error_for_a_missing_compiler_says_how_to_install_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.root / f"tools/clang{SUFFIX}").unlink()
    monkeypatch.setenv("PATH", f"{bench.root}/tools")
    with pytest.raises(EnvironmentLack, match="clang-22 is not installed") as caught:
        bench.build()
    assert caught.value.remedy == "apt-get install clang-22 lld-22 llvm-22"


def test_a_missing_make_is_reported(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    select(f"clang{SUFFIX}").identity()  # whose scripts need a PATH with more on it
    monkeypatch.setattr(clang.Clang, "resource_directory", lambda self: bench.root)
    (bench.root / "tools/grep").symlink_to("/usr/bin/grep")
    monkeypatch.setenv("PATH", str(bench.root / "tools"))
    with pytest.raises(EnvironmentLack, match="make is not installed"):
        bench.build()


def test_the_toolchain_is_that_of_the_version_asked_for(bench: Bench) -> None:
    chosen = clang.TOOLCHAIN.select(SUFFIX.removeprefix("-"))
    assert chosen == select(f"clang{SUFFIX}")
    assert (chosen.version, chosen.major) == (VERSION, 22)
    assert chosen.make_variables(SPEC.arch)["LLVM"] == SUFFIX
    assert set(chosen.identity()) == {"clang", "ld.lld", "llvm-profdata"}


def test_the_digest_of_overlays_follows_which_ones_there_are() -> None:
    assert kbuild.overlay_digest(()) == kbuild.overlay_digest(())
    assert kbuild.overlay_digest(()) != kbuild.overlay_digest(("pgo",))
