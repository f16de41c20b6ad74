"""What is refused before anything is made."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from mepof.errors import InputError, MepofError
from mepof.executor import programs
from mepof.executor.programs import WrongProgram, compiled, plan_of
from mepof.g4 import Source, render
from mepof.steps.kernel_build import BODY

LONG = "./" + "a" * 300


@pytest.mark.parametrize(
    "program",
    [
        f"opt {LONG} pgo rand kbench.",
        f"opt {LONG * 99} pgo rand kbench.",
        f"set base {LONG}.afdo.\nopt debian:linux-source-6.12 autofdo rand kbench.",
        f"eval {LONG * 2};/dev/null.",
    ],
)
def test_a_name_that_is_too_long_is_the_users_error(program: str) -> None:
    with pytest.raises(InputError, match="cannot be read: File name too long") as caught:
        plan_of(Source("p.g4", program))
    assert len(caught.value.message) < 1000


@pytest.mark.parametrize("special", ["pipe", "/dev/zero"])
@pytest.mark.parametrize(
    "program",
    [
        "opt {} pgo rand kbench.",
        "set config {}.\nopt debian:linux-source-6.12 pgo rand kbench.",
        "set base {}.\nopt debian:linux-source-6.12 pgo rand kbench.",
        "set perf-data {}.\nopt debian:linux-source-6.12 autofdo rand kbench.",
        "eval {} pipe.",
    ],
)
def test_what_cannot_be_read_twice_is_the_users_error(
    tmp_path: Path, program: str, special: str
) -> None:
    path = tmp_path / special
    if special == "pipe":
        os.mkfifo(path)
    with pytest.raises(InputError, match=f"{path} is neither a file nor a directory .copy what"):
        plan_of(Source("p.g4", program.format(path)))


def test_a_pipe_is_not_read_for_the_words_that_an_app_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("app.toml")
    program = "set without import.\nopt debian:linux-source-6.12 pgo rand ./app.toml."
    with pytest.raises(WrongProgram, match="is neither a file nor a directory"):
        plan_of(Source("p.g4", program))


EVERY_PATH = """\
set config ./first.config+slim+./no.config.
set package bootimg:./boot.img.
set base ./base.afdo.
goal geomean:./own.toml 5.
opt ~/linux autofdo script ./no/app.toml:list;"kbench:my list".
set package none.
set core ./core.toml.
set base none.
adap ./x.tar.xz#sha256=HASH autofdo learned kbench:./memory.
merge ./a.profdata;./b.profdata.
set hotness ./hot.profdata.
set instrument 95%.
opt ./linux pgo rand kbench:3;./second.toml:2.
set instrument all.
set perf-data one.data,./two.data.
opt /src/linux autofdo+propeller rand kbench.
recomp /src/linux /old/run.profdata.
check plain;/old/opt.img kselftest:futex/functional.
eval ./old.img;opt pipe;./own.toml.
""".replace("HASH", "0" * 64)

MISSING = {
    *(
        (1, 12, "./first.config"),
        (1, 32, "./no.config"),
        (2, 21, "./boot.img"),
        (3, 10, "./base.afdo"),
        (4, 14, "./own.toml"),
    ),
    *((5, 5, "~/linux"), (5, 28, "./no/app.toml"), (5, 42, "list"), (5, 47, "my list")),
    (7, 10, "./core.toml"),
    *((9, 6, "./x.tar.xz"), (9, 112, "./memory"), (10, 7, "./a.profdata")),
    *(
        (10, 20, "./b.profdata"),
        (11, 13, "./hot.profdata"),
        (13, 5, "./linux"),
        (13, 31, "./second.toml"),
    ),
    *((15, 15, "one.data"), (15, 24, "./two.data"), (16, 5, "/src/linux"), (17, 8, "/src/linux")),
    *((17, 19, "/old/run.profdata"), (18, 13, "/old/opt.img"), (19, 6, "./old.img")),
    (19, 25, "./own.toml"),
}


def test_every_missing_path_is_reported_with_its_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(programs, "render", lambda found, source: render(found, source, 99))
    with pytest.raises(WrongProgram) as caught:
        plan_of(Source("p.g4", EVERY_PATH))
    found = re.findall(r"p.g4:(\d+):(\d+): error: `(.*)` does not exist", caught.value.message)
    assert {(int(line), int(column), path) for line, column, path in found} == MISSING
    assert caught.value.message.count(f"help: paths are relative to {tmp_path}") == 20
    assert "help: write the whole path instead of `~`" in caught.value.message


def test_a_path_beside_the_program_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/list").touch()
    monkeypatch.chdir(tmp_path)
    program = Source("there/p.g4", "opt debian:linux-source-6.12 pgo script kbench:list.")
    with pytest.raises(
        WrongProgram, match=f"relative to {tmp_path}; the program is beside there/list"
    ):
        plan_of(program)


@pytest.mark.parametrize(
    ("statement", "remedy"),
    [
        ("build Debian:linux-source-6.12.", "Debian's source is `debian:linux-source-6.12`"),
        ("build v6.12.", "a release is `debian:linux-source-6.12`, or `git+URL#tag=v6.12`"),
        ("set toolchain clang:~/llvm. build /usr.", "write the whole path instead of `~`"),
        ("set toolchain gcc:./bin/arm-. build /usr.", "name the directory of the compilers: "),
    ],
)
def test_what_a_missing_path_may_mean_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, remedy: str
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/arm-gcc").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WrongProgram) as caught:
        plan_of(Source("p.g4", statement))
    assert f"help: {remedy}" in caught.value.message


PROFILED = "set name a. profile debian:linux-source-6.12 autofdo+propeller rand kbench."


@pytest.mark.parametrize(
    ("recompiled", "differs"),
    [
        ("recomp debian:linux-source-6.12 a O2.", None),
        ("recomp debian:linux-source-6.12 a O3;FlagsOnly.", None),
        ("recomp debian:linux-source-6.12 a O3.", "set of options"),
        ("set exclude kernel/fork.o. recomp debian:linux-source-6.12 a.", "set of exclusions"),
        ("set config slim+disk. recomp debian:linux-source-6.1 a.", "configuration and source"),
    ],
)
def test_a_profile_that_fits_one_build_is_not_for_another(
    recompiled: str, differs: str | None
) -> None:
    plan = compiled(Source("p.g4", f"{PROFILED} {recompiled}"))
    (build,) = (step for step in plan.steps if step.id == "recomp/build")
    if differs is None:
        BODY.check_in(build, plan)
        return
    message = rf"the profile of propeller was recorded on a kernel with another {differs} \("
    with pytest.raises(InputError, match=message):
        BODY.check_in(build, plan)


@pytest.mark.parametrize(
    "setting", ["exclude kernel/frok.o", "exclude kernel/fork.c,kernel/frok.c"]
)
def test_an_exclusion_that_a_directory_does_not_have_is_refused_at_once(
    tmp_path: Path, setting: str
) -> None:
    for name in ("kernel/fork.c", "scripts/kconfig/Makefile"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("allnoconfig:\n")
    text = "set {}. opt {} pgo rand kbench."
    for step in (plan := compiled(Source("p.g4", text.format("seed 1", tmp_path)))).steps:
        if step.kind == BODY.kind:
            BODY.check_in(step, plan)
    plan = compiled(Source("p.g4", text.format(setting, tmp_path)))
    (build,) = (step for step in plan.steps if step.id == "opt/build")
    with pytest.raises(InputError, match=r"the exclusion `kernel/frok\..` matches no C") as caught:
        BODY.check_in(build, plan)
    assert caught.value.remedy == "did you mean `kernel/fork.o`?"


def test_a_layout_is_made_anew_on_an_older_profile_of_another_kernel() -> None:
    text = f"{PROFILED} set base a. set name b. opt debian:linux-source-6.1 autofdo+propeller"
    plan = compiled(Source("p.g4", f"{text} rand kbench O3."))
    builds = [step for step in plan.steps if step.id.startswith("b/") and step.kind == BODY.kind]
    assert len(builds) >= 3
    for step in builds:
        BODY.check_in(step, plan)


def test_a_compiler_that_cannot_link_in_another_order_is_refused_at_once() -> None:
    text = "set toolchain gcc. set relinked 2. opt debian:linux-source-6.12 gcc-pgo rand kbench."
    plan = compiled(Source("p.g4", f"{text} eval plain;opt."))
    relinked = [step for step in plan.steps if step.params.get("layout_seed") is not None]
    assert relinked
    for step in relinked:
        with pytest.raises(InputError, match="gcc cannot be used with set relinked"):
            BODY.check(step)


def test_a_commit_of_a_local_repository_is_shown_as_one(tmp_path: Path) -> None:
    program = Source("p.g4", f"build {tmp_path}#tag=v6.12.")
    with pytest.raises(WrongProgram, match=rf"help: write git\+file://{tmp_path}#tag=v6.12"):
        plan_of(program)


def test_a_path_that_no_step_reads_may_be_missing() -> None:
    text = "set config ./none.config.\nset config slim.\nbuild debian:linux-source-6.12.\n"
    assert plan_of(Source("p.g4", text)).program == text


OPT = "opt debian:linux-source-6.12 {} rand kbench."


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (
            f"set device uml. set arch um. {OPT.format('pgo')} eval plain;opt.",
            "the device uml does not count instructions",
        ),
        (
            f"set device uml. set arch um. {OPT.format('autofdo')}",
            "the device uml does not record branches",
        ),
        (
            f"set device uml. set arch arm64. {OPT.format('pgo')}",
            "the device uml cannot boot arm64 kernels",
        ),
        (
            f"set device uml. {OPT.format('pgo')} check plain;opt.",
            "the device uml cannot boot x86-64 kernels",
        ),
        (
            f"set arch um. {OPT.format('pgo')} eval plain;opt.",
            "the device qemu has no machine for um",
        ),
        (
            f"set device phone. {OPT.format('autofdo')}",
            "phones record branches by Arm's trace units, which x86-64 does not have",
        ),
    ],
)
def test_what_a_device_cannot_do_is_known_before_there_are_kernels(program: str, why: str) -> None:
    with pytest.raises(MepofError) as caught:
        plan_of(Source("p.g4", program))
    assert caught.value.message == why


@pytest.mark.parametrize(
    ("program", "remedy"),
    [
        (f"set arch um. {OPT.format('pgo')}", "`set device uml`"),
        (f"set arch um. set device uml. {OPT.format('pgo')} eval plain.", "`make bench-native`"),
    ],
)
def test_what_there_is_for_user_mode_linux_is_named(program: str, remedy: str) -> None:
    with pytest.raises(MepofError) as caught:
        plan_of(Source("p.g4", program))
    assert remedy in (caught.value.remedy or "")
