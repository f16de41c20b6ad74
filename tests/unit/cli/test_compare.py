"""``mepof device compare``, on a machine that is made up."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from writers.played_box import OLD, OPT, PLAIN, SAVED, Box, Here, config

from mepof.cli import compare
from mepof.cli.main import main
from mepof.device import restart
from mepof.device.shell import LostConnection, Ran
from mepof.device.ssh import SshShell
from mepof.measure.boots import KeptBoots

KIND = """\
title = "made up"
source = "nowhere"

[reboot]
command = ["systemctl", "reboot"]
ready = ["up"]
answer = "running"
seconds = 0.01

[[setting]]
what = "governor"
path = "/governor"
value = "performance"
"""
COUNTERS = """\
title = "made up"
source = "nowhere at all"
at_once = 2
counter = [{ metric = "kernel_instructions", event = "instructions" }]
"""
UNIT = "etc/systemd/system/mepof-compare.service"
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def box(tmp_path: Path) -> Box:
    found = Box(tmp_path / "box", costs={OPT: 90})
    found.file("governor", "schedutil")
    return found


@pytest.fixture
def mepof(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Call:
    (tmp_path / "kind.toml").write_text(KIND)
    (tmp_path / "counters.toml").write_text(COUNTERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(SshShell, "connect", lambda host: box)
    monkeypatch.setattr(compare, "LocalShell", Here)
    monkeypatch.setattr(Here, "__init__", lambda self: self.__dict__.update(root=box.root, box=box))

    def call(*words: str, on: tuple[str, ...] = ("--ssh", "box")) -> tuple[int, str, str]:
        given: tuple[str, ...] = (
            "--programs",
            "/p",
            "--metric",
            "proc",
            "--counters",
            "counters.toml",
        )
        given += ("--prepare", "kind.toml", "--repetitions", "3", *on)
        monkeypatch.setattr("sys.argv", ["mepof", "device", "compare", *words, *given])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capfd.readouterr()

    return call


def report() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("out/compare/report.json").read_text())
    return found


def test_kernels_are_booted_in_turns_and_compared(mepof: Call, box: Box) -> None:
    status, out, err = mepof(PLAIN, OPT)
    assert (status, box.runs) == (0, OLD), err
    # A rehearsal; rounds of the baseline, the other and the control; and the way back.
    rounds = [PLAIN, OPT, PLAIN, OPT, PLAIN, PLAIN, PLAIN, PLAIN, OPT]
    assert box.history == [OLD, *rounds, OLD]
    assert (box.root / "governor").read_text() == "schedutil\n"
    (row,) = (r for r in report()["cases"] if r["metric"] == "kernel_instructions")
    assert row["kind"] == "counted" and row["boots"] == 3 and row["baseline_boots"] == 6
    assert 11.0 < row["improvement_percent"] < 11.2
    (image, _) = report()["images"]
    assert image["name"] == PLAIN and image["digest"] == "ab" * 32
    assert image["device"] == {
        "name": "box",
        "accel": "hardware",
        "cpu": "AMD Ryzen 7 7700",
        "mode": "",
    }
    assert "Native" in " ".join(report()["method"])
    assert OPT in out


def test_the_same_command_continues_and_then_only_reports(mepof: Call, box: Box) -> None:
    box.hangs = (OPT,)
    status, _, err = mepof(PLAIN, OPT)
    assert status == 1 and "box was not up within" in err
    assert f"a reset leads back to {OLD}" in err
    box.hangs = ()
    box.reset()
    assert box.runs == OLD
    del box.history[:]
    assert mepof(PLAIN, OPT)[0] == 0
    assert box.history == [OPT, PLAIN, OPT, PLAIN, PLAIN, PLAIN, PLAIN, OPT, OLD]
    del box.history[:]
    status, out, _ = mepof(PLAIN, OPT, "--json")
    assert status == 0 and json.loads(out)["baseline"] == PLAIN
    assert box.history == []


def test_a_kernel_that_panics_ends_the_comparison(mepof: Call, box: Box) -> None:
    box.panics = (OPT,)
    status, _, err = mepof(PLAIN, OPT)
    assert status == 1 and f"{OPT} did not boot: box is back on {OLD}" in err
    assert box.runs == OLD and box.environment == {}
    assert not Path("out/compare/report.json").exists()


def test_a_kernel_that_fails_its_self_check_is_left(mepof: Call, box: Box) -> None:
    box.selfcheck = {OPT: 1}
    status, _, err = mepof(PLAIN, OPT)
    assert status == 1 and f"{OPT} is not sound" in err
    assert box.runs == OLD


def test_nothing_but_the_old_kernel_is_booted_before_grub_has_cleared_an_entry(
    mepof: Call, box: Box
) -> None:
    box.clears = False
    status, _, err = mepof(PLAIN, OPT)
    assert status == 1 and "did not clear the entry that it was to boot once" in err
    assert (box.history, box.environment) == ([OLD], {})


@pytest.mark.parametrize(
    ("default", "remedy"),
    [
        (
            "1",
            "mkdir -p /etc/default/grub.d && echo GRUB_DEFAULT=saved >> "
            "/etc/default/grub.d/mepof.cfg && update-grub && grub-set-default",
        ),
        (SAVED, f"on box: grub-set-default 'gnulinux-advanced-5e>gnulinux-{OLD}-advanced-5e'"),
    ],
)
def test_a_machine_that_would_not_return_is_not_rebooted(
    mepof: Call, box: Box, default: str, remedy: str
) -> None:
    box.file("boot/grub/grub.cfg", config(default))
    box.environment["saved_entry"] = "1"
    status, _, err = mepof(PLAIN, OPT)
    assert status == 3 and f"box runs {OLD}, but GRUB boots {OPT} by itself" in err
    assert remedy in err and box.history == []


def test_a_kernel_that_stays_down_after_a_panic_is_warned_of(mepof: Call, box: Box) -> None:
    box.file("boot/grub/grub.cfg", config().replace(" panic=10", " softlockup_panic=1"))
    assert f"{OPT} has no panic= among its parameters" in mepof(PLAIN, OPT)[2]


PARANOID = Ran(255, "Error:\nNo permission to enable instructions:k event.\n")
# perf 6.1 in virtual machines without a PMU, such as this project's own.
NO_PMU = Ran(0, "<not supported>;;instructions:k;0;100.00;;\n")


@pytest.mark.parametrize(
    ("counted", "complaint"),
    [
        (PARANOID, "perf is not permitted to count events of the kernel"),
        (NO_PMU, "perf cannot count any metric: instructions:k is not supported"),
        (Ran(127, "env: 'perf': No such file or directory\n"), "perf is not installed"),
    ],
)
def test_a_machine_that_cannot_count_is_not_rebooted(
    mepof: Call, box: Box, counted: Ran, complaint: str
) -> None:
    box.counting = lambda operations, cost: counted
    status, _, err = mepof(PLAIN, OPT)
    assert (status, box.history) == (3, []) and complaint in err
    assert (box.root / "governor").read_text() == "schedutil\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((PLAIN,), "at least two kernels are needed"),
        ((PLAIN, PLAIN), "at least two kernels are needed"),
        ((PLAIN, "6.13"), "GRUB's menu has no kernel `6.13`"),
        ((PLAIN, OPT, "--repetitions", "no"), "invalid repetitions `no`"),
        ((PLAIN, OPT, "--prepare", "android"), "is not a machine that boots installed kernels"),
        ((PLAIN, OPT, "--counters", "abacus"), "unknown counters `abacus`"),
        ((PLAIN, OPT, "--metric", "nothing"), "unknown metric `nothing`"),
    ],
)
def test_what_cannot_be_compared_is_the_users_mistake(
    mepof: Call, box: Box, words: tuple[str, ...], complaint: str
) -> None:
    given = {"--repetitions", "--prepare", "--counters"} & set(words)
    on = ("--ssh", "box", *(words[2:] if given else ()))
    status, _, err = mepof(*(words[:2] if given else words), on=on)
    assert (status, box.history) == (2, []) and complaint in err


def test_a_file_that_is_not_progress_is_named(mepof: Call) -> None:
    path = Path("out/compare/progress.json")
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    status, _, err = mepof(PLAIN, OPT)
    assert status == 2 and "progress.json is not the progress of a comparison" in err


def test_a_file_in_place_of_the_directory_is_named(mepof: Call) -> None:
    Path("out").mkdir()
    Path("out/compare").touch()
    status, _, err = mepof(PLAIN, OPT)
    assert status == 2 and "progress.json cannot be read: Not a directory" in err
    assert "write elsewhere with --out" in err


def test_a_machine_compares_its_own_kernels_in_a_process_a_boot(mepof: Call, box: Box) -> None:
    runs = 0
    while runs == 0 or (box.root / UNIT).exists():
        assert runs < 20
        status, out, err = mepof(PLAIN, OPT, on=())
        assert status == 0, err
        runs += 1
    # A process for the rehearsal and for each of nine boots; the last one finds what to report.
    assert runs == 11 and OPT in out
    assert [each for each in box.history if "able" not in each][-1] == OLD
    assert box.history.count("enable mepof-compare.service") == 10
    assert box.history.count("disable mepof-compare.service") == 10
    assert box.runs == OLD


def test_the_unit_has_the_command_and_is_gone_when_it_runs(mepof: Call, box: Box) -> None:
    mepof(PLAIN, OPT, on=())
    unit = (box.root / UNIT).read_text()
    assert f'ExecStart="{sys.executable}" "-m" "mepof.cli.main" "device" "compare" ' in unit
    assert f"WorkingDirectory={Path.cwd()}" in unit
    assert f"StandardOutput=append:{Path.cwd()}/out/compare/log" in unit
    box.selfcheck = {PLAIN: 1}
    status, _, err = mepof(PLAIN, OPT, on=())  # asks for the first kernel after the rehearsal
    assert status == 0, err
    status, _, err = mepof(PLAIN, OPT, on=())
    assert status == 1 and f"{PLAIN} is not sound" in err.partition("returns to")[0]
    assert not (box.root / UNIT).exists() and box.runs == OLD


@pytest.mark.parametrize("on", [("--ssh", "box"), ()])
def test_a_machine_that_does_not_reboot_is_left_as_it_is(
    mepof: Call, box: Box, on: tuple[str, ...]
) -> None:
    box.refuses = True
    status, _, err = mepof(PLAIN, OPT, on=on)
    assert status == 1 and "`systemctl reboot` failed on" in err and "inhibited" in err
    assert box.environment == {} and not (box.root / UNIT).exists()


def test_a_unit_that_cannot_continue_returns_and_does_not_start_again(
    mepof: Call, box: Box
) -> None:
    for _ in range(2):
        assert mepof(PLAIN, OPT, on=())[0] == 0
    assert box.runs == PLAIN
    Path("counters.toml").unlink()
    status, _, err = mepof("--continues", PLAIN, OPT, on=())
    assert status == 2 and "counters.toml" in err
    assert not (box.root / UNIT).exists() and box.runs == OLD


def test_a_unit_whose_progress_is_gone_reboots_nothing(mepof: Call, box: Box) -> None:
    mepof(PLAIN, OPT, on=())
    assert '"compare" "--continues" ' in (box.root / UNIT).read_text()
    Path("out/compare/progress.json").unlink()
    boots = box.boots
    status, _, err = mepof("--continues", PLAIN, OPT, on=())
    assert status == 1 and "progress.json is gone since this machine rebooted" in err
    assert not (box.root / UNIT).exists() and box.boots == boots


def test_a_machine_that_was_reset_while_it_measured_continues(
    mepof: Call, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        assert mepof(PLAIN, OPT, on=())[0] == 0
    assert box.runs == PLAIN
    progress = Path("out/compare/progress.json")
    seen: list[str] = []
    keep = KeptBoots.keep

    def look(kept: KeptBoots, boot: Any) -> None:
        seen.append(progress.read_text())
        keep(kept, boot)

    monkeypatch.setattr(KeptBoots, "keep", look)

    def measured(*given: Any) -> None:
        seen.append(progress.read_text())
        raise SystemExit(9)  # as after a reset, nothing else runs

    with monkeypatch.context() as patched:
        patched.setattr("mepof.measure.hardware.measure_running", measured)
        patched.setattr(compare._Laboratory, "give_up", lambda *given: None)
        assert mepof(PLAIN, OPT, on=())[0] == 9
    assert json.loads(seen.pop())["asked"]["measured"] == f"boot-{box.boots}\n"
    box.reset()
    status, _, err = mepof(PLAIN, OPT, on=())
    assert status == 0 and f"was reset while {PLAIN} was measured" in err
    assert box.runs == PLAIN
    assert mepof(PLAIN, OPT, on=())[0] == 0 and box.runs == OPT
    assert [json.loads(each)["asked"] for each in seen] == [None]


def other_initrds(box: Box) -> None:
    box.contents = {f"/boot/initrd.img-{each}": "ef" * 32 for each in (PLAIN, OPT)}


def other_programs(box: Box) -> None:
    box.contents = {"/p/bin/kbench": "ef" * 32}


def other_parameters(box: Box) -> None:
    box.file("boot/grub/grub.cfg", config().replace("quiet", "quiet mitigations=off"))


def other_counters(box: Box) -> None:
    Path("counters.toml").write_text(COUNTERS.replace("at_once = 2", "at_once = 1"))


def other_preparation(box: Box) -> None:
    Path("kind.toml").write_text(KIND.replace('"performance"', '"powersave"'))


@pytest.mark.parametrize(
    "change",
    [other_initrds, other_programs, other_parameters, other_counters, other_preparation],
)
def test_boots_of_something_else_are_not_taken(
    mepof: Call, box: Box, change: Callable[[Box], None]
) -> None:
    assert mepof(PLAIN, OPT)[0] == 0
    change(box)
    del box.history[:]
    mepof(PLAIN, OPT)
    assert box.history[:3] == [OLD, PLAIN, OPT]


def test_a_lost_connection_leaves_no_boot_behind(
    mepof: Call, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*given: object) -> None:
        raise LostConnection("box is gone")

    monkeypatch.setattr(compare, "restart", lost)
    status, _, err = mepof(PLAIN, OPT)
    assert status == 1 and "box is gone" in err
    assert box.environment == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_has_the_machine_return_when_it_is_up(
    mepof: Call, box: Box, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    began = restart.restart
    answers = iter([False, True])

    def interrupted(*given: Any) -> None:
        began(*given)
        if box.runs == OPT:
            monkeypatch.setattr(compare, "restart", began)
            up = restart.is_up
            monkeypatch.setattr(compare, "is_up", lambda *of: next(answers, True) and up(*of))
            os.kill(os.getpid(), number)

    monkeypatch.setattr(compare, "restart", interrupted)
    status, _, err = mepof(PLAIN, OPT)
    assert status == 130, err
    assert f"waiting for box, to return it to {OLD}" in err
    assert box.runs == OLD and not Path("out/compare/progress.json").exists()


def test_a_machine_that_stays_away_is_told_with_the_command_that_returns_it(
    mepof: Call, box: Box
) -> None:
    box.hangs = (OPT,)
    assert "on box: grub-editenv - unset next_entry && systemctl reboot" in mepof(PLAIN, OPT)[2]


def test_another_machine_does_not_continue_a_comparison(mepof: Call, box: Box) -> None:
    box.hangs = (OPT,)
    mepof(PLAIN, OPT)
    box.hangs = ()
    box.reset()
    box.file("etc/machine-id", "ff00")
    del box.history[:]
    status, _, err = mepof(PLAIN, OPT)
    assert (status, box.history) == (2, [])
    assert "is the progress of another machine than box" in err and "with --out" in err


def test_a_finished_comparison_decides_nothing_about_the_next(mepof: Call, box: Box) -> None:
    assert mepof(PLAIN, OPT)[0] == 0
    box.runs = PLAIN
    box.file("boot/grub/grub.cfg", config(first=PLAIN))
    del box.history[:]
    assert mepof(PLAIN, "6.13")[0] == 2
    assert box.history == []


def test_the_origin_of_a_machine_that_was_set_up_otherwise_is_dropped(
    mepof: Call, box: Box
) -> None:
    box.hangs = (OPT,)
    mepof(PLAIN, OPT)
    box.hangs = ()
    box.reset()
    box.runs = PLAIN
    box.file("boot/grub/grub.cfg", config(first=PLAIN))
    del box.history[:]
    assert mepof(PLAIN, "6.13")[0] == 2
    assert box.history == []


# Of a guest of KVM on arm64, systemd says `qemu`.
@pytest.mark.parametrize("virtual", ["kvm", "qemu", "amazon"])
def test_a_virtual_machine_is_reported_as_one(mepof: Call, box: Box, virtual: str) -> None:
    box.virtual = virtual
    assert mepof(PLAIN, OPT)[0] == 0
    (image, _) = report()["images"]
    assert image["device"]["accel"] == virtual
    (row,) = (r for r in report()["cases"] if r["metric"] == "kernel_instructions")
    assert row["kind"] == "counted"
    method = " ".join(report()["method"])
    assert "Native" in method and "ran in a virtual machine" in method


def test_relative_programs_are_of_this_machine_alone(mepof: Call, box: Box) -> None:
    status, _, err = mepof(PLAIN, OPT, on=("--ssh", "box", "--programs", "out/p"))
    assert (status, box.history) == (2, []) and "--programs out/p is relative" in err
    box.selfcheck = {OLD: 1}
    status, _, err = mepof(PLAIN, OPT, on=("--programs", "out/p"))
    assert status == 1 and f"and run that there in {Path.cwd()}/out/p" in err
