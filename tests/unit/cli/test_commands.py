"""The command line: what it answers, to whom, and with which exit status."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from report.samples import measurement, report
from writers.kernel_image import arm64_image, bz_image, elf
from writers.mini_kernel import write_tree
from writers.shell import (
    Answer,
    Shell,
    assert_refused,
    instant,
    kernel,
    one_document,
    program,
)

from mepof.cli import run
from mepof.cli.run import estimate
from mepof.device import flashing
from mepof.errors import EnvironmentLack, Interrupted, WorkError
from mepof.executor.protocol import Finished
from mepof.plan.explain import Explanation
from mepof.report import write_report

MAKES_NOTHING = (
    "warning: it makes nothing\n  help: add a statement, such as `opt SOURCE pgo rand kbench.`\n"
)
APP_FAILED = "the app `Redis` failed: the action entry did not write 'OK'"


WRONG_PROGRAMS = [
    ("opt /src pgoo rand kbench.", "p.g4:1:10: error: unknown algorithm `pgoo`"),
    ("opt /src pgo rnad kbench.", "unknown click `rnad`"),
    ("opt /src pgo rand kbnch.", "did you mean `kbench`?"),
    ("opt /src pgo rand kbench O4.", "unknown option `O4`"),
    ("opt /src pgo rand kbench O2;O3.", "`O3` conflicts with `O2`"),
    ("opt /src pgo rand kbench O2;O2.", "`O2` is given twice"),
    ("opt /src pgo rand kbench O2", "`.` is missing"),
    ("opt /src pgo.", "p.g4:1:"),
    ("optt /src pgo rand kbench.", "did you mean `opt`?"),
    ("eval.", "p.g4:1:"),
    ("eval opt pipe.", "unknown image `opt`"),
    ("eval plain pipe.", "`plain` needs an earlier statement"),
    ("eval /k speed.", "unknown metric `speed`"),
    ("set sed 1.", "did you mean `seed`?"),
    ("set seed -1.", "invalid seed"),
    ("set budget 5.", "a duration such as"),
    ("set config slom.", "did you mean `slim`?"),
    ("set name x.", "the name `x` is not used: no statement follows"),
    ("set toolchain clang-3.", "unknown toolchain"),
    ("merge /a/x;/b/y 1.", "expected one weight per profile, found 1 for 2"),
    ("merge /a/x 0.", "invalid weight `0`"),
    ("recomp /src profile.", "unknown profile `profile`"),
    ('opt "/src pgo.', "p.g4:1:5: error"),
    (b"\xff\xfe\x00eval", "p.g4:1:1: error"),
    ("profile /src pgo trav kbench.\neval profile.", "is a profile, not an image"),
]


@pytest.mark.parametrize(("text", "what"), WRONG_PROGRAMS)
def test_a_wrong_program_is_refused_with_the_location(
    shell: Shell, tmp_path: Path, text: str | bytes, what: str
) -> None:
    path = program(tmp_path, text).relative_to(tmp_path)
    answer = shell("g4", "check", path)
    assert_refused(answer, what)
    assert "error: " in answer.err.splitlines()[0]
    assert shell("run", path, "--json") == answer


WRONG_CALLS = [
    (["run"], "Missing argument"),
    (["run", "none.g4"], "the program none.g4 does not exist"),
    (["run", "."], "Is a directory"),
    (["run", "x" * 300], "File name too long"),
    (["run", "p.g4", "--executor", "moon"], "unknown executor `moon`"),
    (["run", "p.g4", "--cores", "0"], "--cores"),
    (["run", "p.g4", "--cores", "two"], "--cores"),
    (["run", "p.g4", "--jsn"], "No such option"),
    (["run", "p.g4", "q.g4"], "unexpected extra argument"),
    (["run", "p.g4", "--store", "p.g4"], "p.g4"),
    (["run", "p.g4", "--out", "p.g4"], "choose another directory with --out"),
    (["run", "p.g4", "--dry-run", "--out", "p.g4"], "p.g4 cannot be written: Not a directory"),
    (["run", "p.g4", "--dry-run", "--out", "p.g4/x"], "choose another directory with --out"),
    (["frobnicate"], "No such command 'frobnicate'"),
    (["g4", "frob"], "No such command 'frob'"),
    (["g4", "fmt", "none.g4"], "the program none.g4 does not exist"),
    (["eval", "none.img"], "none.img cannot be read: No such file"),
    (["eval", "."], "is not a file"),
    (["eval", "x" * 300], "File name too long"),
    (["eval", "p.g4"], "p.g4 is not a bootable kernel image"),
    (["eval", "k.img", "nothing"], "nothing is empty"),
    (["eval", "k.img", "vmlinux"], "vmlinux is an ELF file, which cannot be booted"),
    (["eval", "k.img", "arm64.img"], "k.img (x86-64), arm64.img (arm64)"),
    (["eval", "k.img", "--metric", "speed"], "unknown metric `speed`"),
    (["eval", "k.img", "--metric", "pipes"], "--metric: did you mean `pipe`?"),
    (["eval", "k.img", "--metric", "pipe;pipe"], "given twice"),
    (["eval", "k.img", "--metric", "shop.toml"], "--metric: write `./shop.toml`"),
    (["eval", "k.img", "--metric", "./shop.toml"], "./shop.toml does not exist"),
    (["eval", "k.img", "--metric", "pipe", "--metric", "file,pipe"], "given twice"),
    (["eval", "k.img", "--metric", ","], "no metric is given"),
    (["eval", "k.img", "--repetitions", "0"], "invalid repetitions `0`"),
    (["eval", "k.img", "--repetitions", "x"], "--repetitions: expected a number from 1 to 1000"),
    (["report", "none"], "cannot read none/report.json"),
    (["report", "broken"], "broken/report.json is not a report"),
    (["report", "broken", "--json", "--to", "junit"], "--json and --to are two forms"),
    (["report", "broken", "--to", "pdf"], "'pdf' is not one of 'markdown', 'junit'"),
    (["step", "--store", "s", "--recipe", "none"], "none"),
    (["step", "--store", "s", "--recipe", "p.g4"], "is not the recipe of a step"),
    (["step"], "Missing option"),
]


@pytest.mark.parametrize(("words", "what"), WRONG_CALLS, ids=lambda v: str(v)[:40])
def test_a_wrong_call_is_refused_in_one_line_with_a_remedy(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], what: str
) -> None:
    instant(monkeypatch)
    program(
        tmp_path,
        "eval ./k.img pipe.\n" if "--out" in words else f"recomp /nowhere {kernel(tmp_path)}.\n",
    )
    (tmp_path / "k.img").write_bytes(bz_image())
    (tmp_path / "arm64.img").write_bytes(arm64_image())
    (tmp_path / "vmlinux").write_bytes(elf(62))
    (tmp_path / "nothing").touch()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/report.json").write_text('{"schema": 7}')
    answer = shell(*words)
    assert_refused(answer, what)
    first, *rest = answer.err.splitlines()
    assert first.startswith("mepof: ")
    assert len(rest) <= 1
    assert all(line.startswith("  help: ") for line in rest)


@pytest.mark.parametrize(
    ("where", "option"),
    [
        (["--dry-run"], "--out"),
        ([], "--out"),
        (["--out", "tree/sub/x"], "--out"),
        (["--out", "../elsewhere", "--store", "tree"], "--store"),
    ],
)
def test_nothing_is_written_into_a_tree_that_the_program_reads(
    shell: Shell, tmp_path: Path, where: list[str], option: str
) -> None:
    program(tmp_path, "build ./ O2.\n")
    write_tree(tmp_path)
    (tmp_path / "tree").symlink_to(tmp_path)
    before = sorted(tmp_path.iterdir())
    answer = shell("run", "p.g4", *where)
    assert_refused(answer, "which is only read")
    assert f"choose a directory outside of it with {option}" in answer.err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("opt /nowhere pgo rand kbench.", "p.g4:1:5: error: `/nowhere` does not"),
        ("recomp ./ /nowhere/x.profdata.", "`/nowhere/x.profdata` does not exist"),
        ("set config ./none.config.\nopt ./ pgo rand kbench.", "`./none.config` does not exist"),
        ("set toolchain clang:/nowhere.\nopt ./ pgo rand kbench.", "`/nowhere` does not exist"),
    ],
)
def test_a_missing_file_is_reported_before_anything_runs(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, what: str
) -> None:
    instant(monkeypatch, kernel_source=AssertionError("it ran"))
    source = tmp_path / "sources"
    source.mkdir()
    monkeypatch.chdir(source)
    answer = shell("run", program(tmp_path, text), "--out", tmp_path / "out")
    assert_refused(answer, what)


@pytest.mark.parametrize("command", [["g4", "check"], ["run", "--dry-run"], ["run"]])
def test_a_directory_without_branch_traces_is_reported_before_anything_runs(
    shell: Shell, tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / "a.data").touch()
    text = f"set perf-data {tmp_path}/hosts.\nopt debian:linux-source-6.12 autofdo rand kbench."
    assert_refused(shell(*command, program(tmp_path, text)), "hosts/a.data: ")


@pytest.mark.parametrize("command", [["g4", "check"], ["run", "--dry-run"], ["run"]])
def test_a_config_of_other_lines_is_reported_before_anything_runs(
    shell: Shell, tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "my.config").write_text("CONFIG_NET=y\nnet yes\n")
    text = f"set config {tmp_path}/my.config.\nopt debian:linux-source-6.12 pgo rand kbench."
    answer = shell(*command, program(tmp_path, text))
    assert_refused(answer, "my.config:2: `net yes` is not a Kconfig line")
    (tmp_path / "my.config").write_text("# Linux/arm64 6.12.1 Kernel Configuration\nCONFIG_A=y\n")
    answer = shell(*command, program(tmp_path, text))
    assert_refused(answer, "my.config is a configuration for arm64, and the kernel is for x86-64")


@pytest.mark.parametrize("command", [["g4", "check"], ["run", "--dry-run"]])
def test_a_suite_that_the_configuration_lacks_is_a_warning(
    shell: Shell, tmp_path: Path, command: list[str]
) -> None:
    write_tree(tmp_path / "linux")
    text = f"opt {tmp_path}/linux pgo trav kload."
    answer = shell(*command, program(tmp_path, text))
    assert answer.status == 0, answer.err
    assert "warning: not every case of `kload` can run" in answer.err
    assert "help: write `set config kload`" in answer.err


@pytest.mark.parametrize("command", [["g4", "check"], ["run", "--dry-run"], ["run"]])
@pytest.mark.parametrize(
    ("base", "what"),
    [
        ("gki_defconfig", "my.config:1: the kernel has no configuration `gki_defconfig`"),
        ("defconfig", "my.config:1: the kernel has no configuration `defconfig`: no arch/x86/"),
        (None, "mepof: the kernel has no configuration `defconfig`: no arch/x86/configs/defconfig"),
    ],
)
def test_a_base_that_a_directory_lacks_is_reported_before_anything_runs(
    shell: Shell, tmp_path: Path, command: list[str], base: str | None, what: str
) -> None:
    (write_tree(tmp_path / "linux") / "arch/x86/configs/defconfig").unlink()
    lines = "CONFIG_NET=y\n" if base is None else f"# base: {base}\nCONFIG_NET=y\n"
    (tmp_path / "my.config").write_text(lines)
    text = f"set config {tmp_path}/my.config.\nbuild {tmp_path}/linux."
    assert_refused(shell(*command, program(tmp_path, text)), what)


FLASHING = "set device phone.\nbuild {}/linux.\nflash build.img."


@pytest.mark.parametrize("command", [["g4", "check"], ["run", "--dry-run"]])
def test_what_a_run_here_would_refuse_is_a_warning(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("MEPOF_PHONES", str(tmp_path / "phones.toml"))
    instant(monkeypatch)
    write_tree(tmp_path / "linux")
    given = program(tmp_path, "set device phone.\n" + FLASHING.format(tmp_path))
    answer = shell(*command, given)
    assert answer.status == 0, answer.err
    assert "p.g4:1:1: warning: `set device` has no effect" in answer.err
    assert answer.err.count("p.g4:1:1: warning: no phone is known here: ") == 1
    assert "help: list the phones in it, or name another file in MEPOF_PHONES" in answer.err
    assert "p.g4:4:1: warning: the program flashes a phone" in answer.err
    assert "help: run it by `mepof run --flash`" in answer.err
    assert answer.err.count("warning: ") == 3


def test_what_a_run_here_would_do_is_no_warning(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flashing, "_permission", threading.Event())
    monkeypatch.setenv("MEPOF_PHONES", str(tmp_path / "phones.toml"))
    (tmp_path / "model.toml").write_text('title = "a phone"\nsource = "nowhere"\n')
    listed = '[[phone]]\nname = "a"\nfastboot = "a-1"\nmodel = "model.toml"\n'
    (tmp_path / "phones.toml").write_text(listed)
    instant(monkeypatch)
    write_tree(tmp_path / "linux")
    given = program(tmp_path, FLASHING.format(tmp_path))
    answer = shell("run", "--dry-run", "--flash", given)
    assert (answer.status, answer.err) == (0, "")


@pytest.mark.parametrize("command", [["g4", "check"], ["run", "--dry-run"]])
@pytest.mark.parametrize("text", ["", "phone = []\n"])
def test_an_empty_list_of_phones_is_reported_before_anything_runs(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], text: str
) -> None:
    monkeypatch.setenv("MEPOF_PHONES", str(tmp_path / "phones.toml"))
    (tmp_path / "phones.toml").write_text(text)
    write_tree(tmp_path / "linux")
    given = program(tmp_path, FLASHING.format(tmp_path))
    assert_refused(shell(*command, given), "phones.toml:1: `phone`")


def test_how_to_join_config_files_is_said_where_one_is_missing(
    shell: Shell, tmp_path: Path
) -> None:
    text = "set config b/one.config+b/two.config.\nopt debian:linux-source-6.12 pgo rand kbench."
    answer = shell("g4", "check", program(tmp_path, text))
    assert answer.status == 2 and "`b/one.config+b/two.config` does not exist" in answer.err
    assert "one after a `+` begins with `./`, `../` or `/`" in answer.err


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "adap https://example.org/l.tar.xz pgo rand kbench.",
            "does not say how the download is verified",
        ),
        ("opt debian:linux-image-6.12 pgo rand kbench.", "not a Debian kernel source package"),
    ],
)
def test_an_unusable_source_is_reported_before_anything_runs(
    shell: Shell, tmp_path: Path, text: str, what: str
) -> None:
    assert_refused(shell("run", program(tmp_path, text)), what)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (WorkError("the kernel did not build: x", "see the log"), 1),
        (EnvironmentLack("clang is not installed", "apt-get install clang"), 3),
        (Interrupted("interrupted"), 130),
    ],
)
def test_every_kind_of_error_has_its_exit_status(
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    status: int,
) -> None:
    instant(monkeypatch, kernel_build=error)
    (tmp_path / "src").mkdir()
    text = f"recomp {tmp_path}/src {kernel(tmp_path)}."
    answer = shell("run", program(tmp_path, text), "--json")
    assert_refused(answer, "", status)
    if status == 1:
        assert "recomp/build: the kernel did not build: x" in answer.err
        assert "help: see the log; see " in answer.err


def test_a_bug_in_mepof_says_that_it_is_one(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mepof.cli.g4.plan_of", lambda source, warn, runs: 1 / 0)
    answer = shell("g4", "check", program(tmp_path, ""))
    assert answer.status == 1
    assert "this is a bug in mepof, please report it" in answer.err


def test_an_interrupt_from_the_keyboard_is_130(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(source: object, warn: object, runs: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mepof.cli.g4.plan_of", interrupt)
    assert shell("g4", "check", program(tmp_path, "")).status == 130


def test_run_with_json_prints_one_document_and_lays_the_results_out(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instant(monkeypatch)
    (tmp_path / "src").mkdir()
    path = program(tmp_path, f"recomp {tmp_path}/src {kernel(tmp_path)}.")
    explained = one_document(shell("run", path, "--dry-run", "--json"))
    assert {step["state"] for step in explained} == {"runs", "depends"}
    assert not (tmp_path / "out").exists()

    answer = shell("run", path, "--json")
    found = one_document(answer)
    assert found["out"] == "out/p"
    assert found["files"] == {"recomp.img": "out/p/recomp.img"}
    assert (tmp_path / "out/p/recomp.img").read_text() == "an image"
    assert not any(step["cached"] for step in found["steps"].values())
    assert "recomp/build" in answer.err  # progress is beside it

    again = one_document(shell("run", path, "--json"))
    assert all(step["cached"] for step in again["steps"].values())
    explained = one_document(shell("run", path, "--dry-run", "--json"))
    assert {step["state"] for step in explained} == {"cached"}


def test_an_image_that_fails_a_test_is_status_1_with_the_name_of_the_test(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instant(monkeypatch)
    (tmp_path / "src").mkdir()
    text = f"recomp {tmp_path}/src {kernel(tmp_path)}.\ncheck plain;recomp kselftest."
    path = program(tmp_path, text)
    answer = shell("run", path)
    assert answer.status == 1
    assert (
        "mepof: kselftest failed: recomp does not pass futex:wait, which plain passes" in answer.err
    )
    assert "Traceback" not in answer.err
    assert "recomp FAILED 1 of them" in answer.out
    assert "futex:wait: crash in 1 of 3 boots: died" in answer.out
    written = json.loads((tmp_path / "out/p/check.json").read_text())
    assert written["passed"] is False
    found = json.loads(shell("run", path, "--json").out)
    assert [check["passed"] for check in found["checks"]] == [False]


def test_a_dry_run_shows_every_step_with_its_reason(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instant(monkeypatch)
    (tmp_path / "src").mkdir()
    path = program(tmp_path, f"recomp {tmp_path}/src {kernel(tmp_path)}.")
    answer = shell("run", path, "--dry-run")
    assert answer.status == 0
    first, why, *others, _ = (line.split() for line in answer.out.splitlines())
    assert first[:3] == ["runs", "source", "←"]
    assert why == ["never", "made", "in", "this", "store"]
    (build,) = (words for words in others if words[1] == "recomp/build")
    assert build[:4] == ["depends", "recomp/build", "←", "source,"]
    assert all(line == line.rstrip() for line in answer.out.splitlines())


def test_a_dry_run_says_how_long_it_will_take(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instant(monkeypatch)
    (tmp_path / "src").mkdir()
    path = program(tmp_path, f"recomp {tmp_path}/src {kernel(tmp_path)}.")
    unknown = "3 of 3 steps would run; none of their kind has run before, so the time is unknown."
    assert shell("run", path, "--dry-run").out.splitlines()[-1] == unknown
    assert shell("run", path).status == 0
    done = "Nothing has to run: the store has every result."
    assert shell("run", path, "--dry-run").out.splitlines()[-1] == done

    path.write_text(f"recomp {tmp_path}/src {kernel(tmp_path)} O3.")
    answer = shell("run", path, "--dry-run")
    assert answer.out.splitlines()[-1].startswith("1 of 3 steps would run, about ")
    assert "options added: O3" in answer.out
    (build,) = (e for e in one_document(shell("run", path, "--dry-run", "--json")) if e["reasons"])
    assert build["reasons"] == ["options added: O3"]
    assert build["details"] == ['options from [] to ["O3"]']
    assert build["seconds"] >= 0
    assert 'options from [] to ["O3"]' in shell("run", path, "--dry-run", "--verbose").out


def explanation(step: str, seconds: float | None) -> Explanation:
    return Explanation(step, "kind", "runs", (), ("why",), None, ("why",), seconds)


def test_an_estimate_says_what_it_does_not_know() -> None:
    steps = [explanation("build", 1234.0), explanation("boot", 40.5)]
    assert estimate(steps) == (
        "2 of 2 steps would run, about 21 min one after the other, as earlier runs took."
    )
    steps += [explanation(f"new{n}", None) for n in range(5)]
    assert estimate(steps) == (
        "7 of 7 steps would run, at least 21 min: "
        "the time of new0, new1, new2 and 2 more is unknown."
    )
    assert "about 41 s " in estimate([explanation("boot", 40.5)])
    assert "about 2 h 05 min " in estimate([explanation("boot", 7500.0)])


def test_g4cc_and_g4_plan_give_the_same_plan(shell: Shell, tmp_path: Path) -> None:
    path = program(tmp_path, "eval /sys/out/opt.img file;pipe.")
    printed = one_document(shell("g4", "plan", path))
    assert shell(path, "-o", "plan.json", command="g4cc") == Answer(0, "", "")
    assert json.loads((tmp_path / "plan.json").read_text()) == printed
    assert_refused(shell(path, "-o", "none/plan.json", command="g4cc"), "cannot be written")
    assert_refused(shell("none.g4", command="g4cc"), "the program none.g4 does not exist")


def test_fmt_prints_or_rewrites(shell: Shell, tmp_path: Path) -> None:
    path = program(tmp_path, "set   seed 1.")
    assert shell("g4", "fmt", path) == Answer(0, "set seed 1.\n", "")
    assert path.read_text() == "set   seed 1."
    assert shell("g4", "fmt", "-w", path) == Answer(0, "", "")
    assert path.read_text() == "set seed 1.\n"
    assert shell("g4", "check", path) == Answer(0, "", f"{path}: {MAKES_NOTHING}")


@pytest.mark.parametrize("words", [[], ["g4"]])
def test_a_command_without_words_shows_its_help(shell: Shell, words: list[str]) -> None:
    answer = shell(*words)
    assert answer.status == 2
    assert "Usage" in answer.out + answer.err
    assert "mepof:" not in answer.err


def test_help_is_not_an_error(shell: Shell) -> None:
    assert shell("run", "--help").status == 0


def test_a_path_is_shown_as_it_is_written(shell: Shell) -> None:
    assert "[bold]:bug:.g4" in shell("run", "[bold]:bug:.g4").err


@pytest.mark.parametrize("text", ["", "# nothing\n", "set seed 1.\n"])
def test_a_program_that_makes_nothing_is_refused(shell: Shell, text: str) -> None:
    Path("p.g4").write_text(text)
    assert_refused(shell("run", "p.g4"), "p.g4 makes nothing")
    answer = shell("g4", "check", "p.g4")
    assert answer == Answer(0, "", f"p.g4: {MAKES_NOTHING}")


@pytest.mark.parametrize(
    ("second", "remedy"),
    [(APP_FAILED, "correct the app; the kernel"), ("passed", "it ran on `opt`; the kernel")],
)
def test_an_app_that_fails_is_not_the_kernels_failure(
    tmp_path: Path, second: str, remedy: str
) -> None:
    made = report(measurement("plain", self_check=APP_FAILED), measurement(self_check=second))
    write_report(made, tmp_path)
    finished = cast(Finished, SimpleNamespace(files={"report": tmp_path / "report.json"}))
    with pytest.raises(WorkError) as caught:
        run._refuse_unsound(finished)
    assert caught.value.message == f"on the image `plain`, {APP_FAILED}"
    assert caught.value.remedy is not None
    assert caught.value.remedy.startswith(f"{remedy} passed its own self-check; see {tmp_path}")


def test_a_control_that_is_unsound_fails_the_run(tmp_path: Path) -> None:
    dead = measurement("plain", factors=(), booted=False, self_check="panic")
    write_report(report(measurement("plain"), measurement(), same_build=dead), tmp_path)
    finished = cast(Finished, SimpleNamespace(files={"report": tmp_path / "report.json"}))
    with pytest.raises(WorkError) as caught:
        run._refuse_unsound(finished)
    assert caught.value.message == "the A/A control of `plain` did not boot: panic"
