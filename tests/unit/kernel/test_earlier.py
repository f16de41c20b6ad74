"""Builds that begin with the objects of an earlier one, on a kernel in miniature."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from writers.mini_kernel import SUFFIX

from mepof.errors import Interrupted, WorkError
from mepof.kernel import earlier, kbuild, objtool
from mepof.kernel.build_spec import BuildSpec, FileFlags
from mepof.toolchain.named import select

from .conftest import SPEC, Bench

WITH_FLAGS = replace(SPEC, selected=(FileFlags(("init/a.o",), ("-fselected",)),))


def build(bench: Bench, name: str, spec: BuildSpec = SPEC, *lines: str) -> Path:
    """Build of a tree that is not new, and keep the objects."""
    for path in bench.tree.rglob("*"):
        os.utime(path, (0, 0))
    output = bench.build(*lines, name=name, spec=spec)
    kbuild.keep(spec, select(f"clang{SUFFIX}"), bench.paths(name))
    return output


def compiled(bench: Bench) -> set[str]:
    """The files that the last build compiled."""
    return {file for _, _, file in bench.seen}


def contents(output: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in output.iterdir()}


def kept(bench: Bench) -> list[Path]:
    return sorted((bench.root / "cache" / "built").iterdir())


EVERY = {"init/a.o", "kernel/b.o", "kernel/bounds.o", "arch/x86/boot/c.o"}


def test_only_files_with_other_commands_are_compiled(bench: Bench) -> None:
    build(bench, "plain")
    assert compiled(bench) == EVERY
    begun = build(bench, "begun", WITH_FLAGS)
    assert compiled(bench) == {"init/a.o"}
    shutil.rmtree(bench.root / "cache" / "built")
    assert contents(build(bench, "whole", WITH_FLAGS)) == contents(begun)
    assert compiled(bench) == EVERY


def test_what_was_asked_for_may_differ_where_the_configuration_does_not(bench: Bench) -> None:
    build(bench, "plain")
    default = ("CONFIG_CC_OPTIMIZE_FOR_PERFORMANCE=y",)
    build(bench, "begun", replace(WITH_FLAGS, config_lines=default))
    assert compiled(bench) == {"init/a.o"}


@pytest.mark.parametrize("where", ["tools/objtool", "lib"])
def test_what_is_built_with_other_paths_is_where_the_build_is(bench: Bench, where: str) -> None:
    build(bench, "plain")
    (place,) = kept(bench)
    command = place / "build" / where / ".check.o.cmd"
    command.parent.mkdir(parents=True)
    command.write_text(f"-o {bench.root}/plain/work/tree/build/x ../../plain/work/tree/build/y.h\n")
    bench.build(name="begun")
    objects = bench.paths("begun").objects
    begun = objects / where / ".check.o.cmd"
    there = "begun/work/tree/build"
    assert begun.read_text() == f"-o {bench.root}/{there}/x ../../{there}/y.h\n"
    assert begun.stat().st_mtime == (objects / "init/a.o").stat().st_mtime


def test_what_has_changed_since_the_earlier_build_is_compiled(bench: Bench) -> None:
    build(bench, "plain")
    (place,) = kept(bench)
    note = json.loads((place / "build/mepof-built.json").read_text())
    note["began"] -= 1000 * 10**9
    (place / "build/mepof-built.json").write_text(json.dumps(note))
    os.utime(bench.tree / "kernel/b.c", (time.time() - 500,) * 2)
    bench.build(name="begun")
    assert compiled(bench) == {"kernel/b.o"}


def kill(bench: Bench, name: str) -> None:
    """Leave an object of a build as if make had been killed when it made that."""
    objects = bench.paths(name).objects
    (objects / "mepof-making").touch()
    (objects / "kernel/b.o").write_text("half of")


def test_after_a_kill_no_object_is_taken_for_one_of_the_earlier_build(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(bench, "plain")
    spec = replace(SPEC, selected=(FileFlags(("kernel/b.o",), ("-fselected",)),))
    os.mkfifo(bench.root / "fifo")
    monkeypatch.setenv("MINI_BLOCK", str(bench.root / "fifo"))
    cancel = threading.Event()
    with pytest.raises(Interrupted):
        bench.build(name="killed", spec=spec, cancel=cancel, told=lambda file: cancel.set())
    monkeypatch.delenv("MINI_BLOCK")
    damaged = bench.paths("killed").objects / "init/a.o"
    damaged.write_text("half of")
    built = contents(bench.build(name="killed", spec=spec))
    assert compiled(bench) == EVERY
    assert built == contents(bench.build(name="whole", spec=replace(spec, share=False)))


@pytest.mark.parametrize("share", [True, False])
def test_after_a_kill_no_object_is_taken_for_one_of_the_trial_before(
    bench: Bench, share: bool
) -> None:
    spec = replace(SPEC, share=share)
    expected = contents(bench.build(name="trials", spec=spec))
    kill(bench, "trials")
    assert contents(bench.build(name="trials", spec=spec)) == expected


def test_a_first_build_that_was_killed_continues(bench: Bench) -> None:
    bench.build(name="first")
    objects = bench.paths("first").objects
    (objects / "mepof-ended").replace(objects / "mepof-making")
    bench.build(name="first")
    assert compiled(bench) == set()


def test_a_first_build_does_not_continue_what_a_crash_left(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = contents(bench.build(name="first"))
    work = bench.paths("first").work
    (work / "trials.json").write_text("[]")
    for name in ("init/a.o", "vmlinux"):
        (work / "tree/build" / name).write_text("")
    monkeypatch.setattr(earlier, "BOOT", bench.root / "boot")
    earlier.BOOT.write_text("another")
    assert contents(bench.build(name="first")) == expected
    assert compiled(bench) == EVERY and (work / "trials.json").read_text() == "[]"
    bench.build(name="first")
    assert compiled(bench) == set()


def test_a_build_that_failed_continues(bench: Bench) -> None:
    build(bench, "plain")
    source = bench.tree / "init/a.c"
    text = source.read_text()
    source.write_text(f"{text}BROKEN\n")
    with pytest.raises(WorkError, match="undeclared identifier"):
        bench.build(name="begun", spec=WITH_FLAGS)
    source.write_text(text)
    bench.build(name="begun", spec=WITH_FLAGS)
    assert compiled(bench) == {"init/a.o"}


def test_each_build_has_a_key_of_its_own(bench: Bench) -> None:
    bench.build(name="plain")
    certificates = bench.paths("plain").objects / "certs"
    certificates.mkdir()
    for name in ("signing_key.pem", ".signing_key.pem.cmd", "signing_key.x509", "blacklist.o"):
        (certificates / name).touch()
    kbuild.keep(SPEC, select(f"clang{SUFFIX}"), bench.paths("plain"))
    (place,) = kept(bench)
    assert [path.name for path in (place / "build/certs").iterdir()] == ["blacklist.o"]


def test_the_build_with_the_same_flags_is_the_nearest(bench: Bench) -> None:
    build(bench, "flags", WITH_FLAGS)
    build(bench, "plain")
    build(bench, "again", replace(WITH_FLAGS, suffix="-again"))
    assert compiled(bench) == set()


def test_what_another_overlay_edits_is_newer_than_the_objects(bench: Bench) -> None:
    build(bench, "plain")
    build(bench, "more", replace(SPEC, overlays=("text-sections",)))
    assert compiled(bench) == set()
    (place,) = (path for path in kept(bench) if not (path / "include").is_symlink())
    edited = place / "include/asm-generic/vmlinux.lds.h"
    assert edited.stat().st_mtime > (place / "build/init/a.o").stat().st_mtime
    makefile = place / "scripts/Makefile.lib"
    assert makefile.stat().st_mtime == (place / "build/init/a.o").stat().st_mtime
    shutil.rmtree(next(path for path in kept(bench) if path != place))
    build(bench, "fewer")
    assert compiled(bench) == EVERY


@pytest.mark.parametrize("differs", ["boot", "configuration", "tree"])
def test_a_build_of_another_family_is_of_no_use(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, differs: str
) -> None:
    build(bench, "plain")
    lines = list[str]()
    if differs == "boot":
        monkeypatch.setattr(earlier, "BOOT", bench.root / "boot")
        earlier.BOOT.write_text("another")
    elif differs == "configuration":
        lines = ["CONFIG_NET=y"]
    else:
        bench.tree = Path(shutil.copytree(bench.tree, bench.root / "other"))
    build(bench, "other", SPEC, *lines)
    assert compiled(bench) >= EVERY
    assert len(kept(bench)) == 2


def test_what_does_not_share_neither_takes_nor_leaves_objects(bench: Bench) -> None:
    alone = replace(SPEC, share=False)
    build(bench, "alone", alone)
    assert not (bench.root / "cache" / "built").exists()
    build(bench, "plain")
    build(bench, "again", alone)
    assert compiled(bench) == EVERY


def test_a_kernel_with_a_profile_is_not_kept(bench: Bench) -> None:
    profile = bench.root / "counts"
    profile.write_text("counts")
    build(bench, "profile", replace(SPEC, profiles={"kernel.profdata": profile}))
    assert not (bench.root / "cache" / "built").exists()


def test_what_objtool_said_of_the_objects_is_known_of_those_that_are_left(bench: Bench) -> None:
    for name in ("init/a.c", "kernel/b.c"):
        with (bench.tree / name).open("a") as file:
            file.write(f"// OBJTOOL ALWAYS: {Path(name).stem}\n")
    build(bench, "plain")
    (bench.tree / "init/a.c").write_text("void start(void) {}\n")
    build(bench, "begun", WITH_FLAGS)
    warned = objtool.warnings(bench.paths("begun").log)
    assert compiled(bench) == {"init/a.o"}
    assert {each.file for each in warned} == {"kernel/b.o"}


def test_objects_that_are_damaged_or_gone_are_compiled(bench: Bench) -> None:
    build(bench, "plain")
    (place,) = kept(bench)
    (place / "build" / "kernel" / "b.o").unlink()
    build(bench, "begun", WITH_FLAGS)
    assert compiled(bench) == {"init/a.o", "kernel/b.o"}
    for place in kept(bench):
        (place / "build" / "mepof-built.json").write_text("{")
    build(bench, "whole")
    assert compiled(bench) == EVERY
    assert len(kept(bench)) == 1


def test_a_copy_that_fails_leaves_a_whole_build(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = contents(build(bench, "plain"))
    cp = bench.root / "tools" / "cp"
    cp.write_text('#!/bin/sh\ncase "$*" in --recursive*) exit 1 ;; esac\nexec /bin/cp "$@"\n')
    cp.chmod(0o755)
    assert contents(build(bench, "whole")) == expected
    assert compiled(bench) == EVERY


def test_objects_that_are_removed_while_they_are_copied_are_of_no_use(bench: Bench) -> None:
    build(bench, "plain")
    (place,) = kept(bench)
    cp = bench.root / "tools" / "cp"
    move = f'case "$*" in --recursive*) mv {place} {place.with_name(".gone")} ;; esac'
    cp.write_text(f'#!/bin/sh\n/bin/cp "$@"\n{move}\n')
    cp.chmod(0o755)
    bench.build(name="whole")
    assert compiled(bench) == EVERY


def test_a_build_that_is_too_large_removes_no_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(bench, "plain")
    before = kept(bench)
    size = sum(path.lstat().st_size for path in (before[0] / "build").rglob("*"))
    with (bench.tree / "init/a.c").open("a") as file:
        file.writelines(f"void more{number}(void)\n" for number in range(size // 8))
    monkeypatch.setattr(earlier, "_KEPT_BYTES", 3 * size // 2)
    monkeypatch.setattr(earlier, "_KEPT_SHARE", 1 << 60)
    build(bench, "large", WITH_FLAGS)
    assert kept(bench) == before


def test_a_large_build_is_kept_where_the_disk_has_room(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(earlier, "_KEPT_BYTES", 0)
    build(bench, "plain")
    (whole,) = kept(bench)
    free = shutil.disk_usage(whole)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    build(bench, "flags", WITH_FLAGS)
    assert kept(bench) == []


def test_a_build_of_which_nothing_can_be_kept_is_a_build(bench: Bench) -> None:
    (bench.root / "cache").mkdir()
    (bench.root / "cache" / "built").write_text("a file")
    assert "kernel" in contents(build(bench, "plain"))


def test_the_least_recently_used_are_removed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for flag in ("-f1", "-f2"):
        build(bench, flag, replace(SPEC, cflags=(flag,)))
    first, second = sorted(kept(bench), key=lambda path: path.stat().st_mtime_ns)
    build(bench, "first", replace(SPEC, cflags=("-f1",), suffix="-first"))
    assert compiled(bench) == set()
    size = sum(path.lstat().st_size for path in (first / "build").rglob("*"))
    monkeypatch.setattr(earlier, "_KEPT_BYTES", 5 * size // 2)
    monkeypatch.setattr(earlier, "_KEPT_SHARE", 1 << 60)
    (first.parent / ".killed").mkdir()
    build(bench, "third", replace(SPEC, cflags=("-f3",)))
    assert first in kept(bench) and second not in kept(bench) and len(kept(bench)) == 2
