from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from mepof.device.former_values import FormerValues
from mepof.device.prepared import pending, prepared, restore
from mepof.device.shell import LocalShell, LostConnection, Ran, Reachable, Refused
from mepof.errors import InputError, Interrupted, WorkError

from .machine import PREPARATION, Machine, state, tree

POLICY = "sys/devices/system/cpu/cpufreq/policy"


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory in memory where there is one: some of this is done hundreds of times."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        yield Path(directory)


@pytest.fixture
def root(directory: Path) -> Path:
    tree(directory / "root")
    return directory / "root"


@pytest.fixture
def journals(directory: Path) -> Path:
    return directory / "journals"


def quiet(text: str) -> None:
    pass


def test_everything_is_set_inside_and_restored_outside(root: Path, journals: Path) -> None:
    before = state(root)
    with prepared(Machine(root), PREPARATION, journals, quiet) as machine:
        inside = state(root)
        assert machine.cores.numbers == (2, 3)
    assert {path: text for path, text in inside.items() if before.get(path) != text} == {
        f"{POLICY}0/scaling_governor": "performance",
        f"{POLICY}2/scaling_governor": "performance",
        f"{POLICY}0/scaling_min_freq": "1440000",
        f"{POLICY}2/scaling_min_freq": "1824000",
        "sys/kernel/hugepages": "never",
        "data/thermald": "stopped",
        "data/hotplugd": "stopped",
        "data/aeroplane": "1",
    }
    assert state(root) == before
    assert not list(journals.glob("*.jsonl"))


def test_messages_name_the_former_values(root: Path, journals: Path) -> None:
    lines: list[str] = []
    with prepared(Machine(root), PREPARATION, journals, lines.append):
        assert "service thermald: stopped, was running" in lines
        assert not any("absent" in line or "threads" in line for line in lines)
        lines.clear()
    # The last that was changed is the first that is set back.
    assert lines[0] == "aeroplane mode: null again"
    assert lines[-1] == "service thermald: running again"


def test_asking_what_would_be_set_sets_nothing(root: Path) -> None:
    before = state(root)
    assert "huge pages: never, is always" in pending(Machine(root), PREPARATION)
    assert state(root) == before


def test_error_inside_restores_it(root: Path, journals: Path) -> None:
    before = state(root)
    with pytest.raises(ZeroDivisionError), prepared(Machine(root), PREPARATION, journals, quiet):
        raise ZeroDivisionError
    assert state(root) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_interrupts_and_restores(root: Path, journals: Path, number: int) -> None:
    before, handler = state(root), signal.getsignal(number)
    with pytest.raises(Interrupted), prepared(Machine(root), PREPARATION, journals, quiet):
        os.kill(os.getpid(), number)
    assert state(root) == before
    assert signal.getsignal(number) is handler


def test_signals_while_restoring_change_nothing(root: Path, journals: Path) -> None:
    before = state(root)
    shell = Watched(root, at=lambda: os.kill(os.getpid(), signal.SIGINT))
    with prepared(shell, PREPARATION, journals, quiet):
        shell.from_now(every=True)
    assert state(root) == before


@dataclass(frozen=True)
class Watched(Machine):
    """Something happens before some of what is done to it."""

    at: Callable[[], None] = lambda: None
    left: list[float] = field(default_factory=lambda: [float("inf"), 1])

    def from_now(self, every: bool = False, number: int = 0) -> None:
        """It happens at every act from now on, or at the one of that number."""
        self.left[:] = [number, 0 if every else 1]

    def _act(self) -> None:
        due = self.left[0] == 0
        self.left[0] -= self.left[1]
        if due:
            self.at()

    def run(self, argv: Sequence[str], timeout: float) -> Ran:
        self._act()
        return super().run(argv, timeout)

    def read(self, path: str) -> str | None:
        if not path.startswith("/data"):
            self._act()
        return super().read(path)

    def write(self, path: str, text: str) -> None:
        self._act()
        super().write(path, text)


def acts_of(root: Path, journals: Path) -> int:
    """How much is done to a machine from its preparation to its end."""
    acts: list[None] = []
    shell = Watched(root, at=lambda: acts.append(None))
    shell.from_now(every=True)
    with prepared(shell, PREPARATION, journals, quiet):
        pass
    return len(acts)


def killed_at(number: int, root: Path, journals: Path) -> None:
    """Prepare in another process, which gets SIGKILL before it does so many things more."""
    child = os.fork()
    if child == 0:
        shell = Watched(root, at=lambda: os.kill(os.getpid(), signal.SIGKILL))
        shell.from_now(number=number)
        with prepared(shell, PREPARATION, journals, quiet):
            pass
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def test_killed_anywhere_everything_is_restored_later(root: Path, journals: Path) -> None:
    before = state(root)
    acts = acts_of(root, journals)
    assert acts > 40
    changed = 0
    for number in range(acts):
        killed_at(number, root, journals)
        changed += state(root) != before
        restore(Machine(root), journals, quiet)
        assert state(root) == before, f"killed before act {number}"
    assert changed > acts // 2


def test_next_preparation_restores_first(root: Path, journals: Path) -> None:
    before = state(root)
    acts = acts_of(root, journals)
    killed_at(acts // 2, root, journals)
    assert state(root) != before
    with prepared(Machine(root), PREPARATION, journals, quiet):
        pass
    assert state(root) == before


def test_incomplete_line_of_the_journal_means_no_change(root: Path, journals: Path) -> None:
    before = state(root)
    with prepared(Machine(root), PREPARATION, journals, quiet, leave=True):
        pass
    (journal,) = journals.glob("*.jsonl")
    with journal.open("a") as file:
        file.write('{"setting": {"what": "some')
    restore(Machine(root), journals, quiet)
    assert state(root) == before


def test_invalid_journal_is_one_clear_error(root: Path, journals: Path) -> None:
    journals.mkdir()
    (journals / "made-up.jsonl").write_text('{"what": 1}\n')
    with pytest.raises(WorkError, match=r"made-up\.jsonl is not a journal"):
        restore(Machine(root), journals, quiet)


def test_it_stays_prepared_until_it_is_restored_however_often(root: Path, journals: Path) -> None:
    before = state(root)
    with prepared(Machine(root), PREPARATION, journals, quiet, leave=True):
        pass
    assert state(root)["data/thermald"] == "stopped"
    for _ in range(2):
        restore(Machine(root), journals, quiet)
        assert state(root) == before


@dataclass(frozen=True)
class Typed(Machine):
    """A machine whose host can be typed in several ways."""

    host: str = "box"

    @property
    def name(self) -> str:
        return f"ssh-{self.host}"


def test_a_machine_is_known_however_its_host_is_typed(root: Path, journals: Path) -> None:
    (root / "etc").mkdir()
    (root / "etc/machine-id").write_text("0a1b\n")
    before = state(root)
    with prepared(Typed(root), PREPARATION, journals, quiet, leave=True):
        pass
    assert state(root) != before
    lines: list[str] = []
    restore(Typed(root, host="root@box"), journals, lines.append)
    assert state(root) == before
    assert "ssh-root@box has nothing to restore" not in lines


def test_restoring_says_if_there_is_nothing_to_restore(root: Path, journals: Path) -> None:
    lines: list[str] = []
    restore(Machine(root), journals, lines.append)
    assert lines == ["made-up has nothing to restore"]


def test_no_other_process_prepares_it_meanwhile(root: Path, journals: Path) -> None:
    with (
        prepared(Machine(root), PREPARATION, journals, quiet),
        pytest.raises(WorkError, match="another process has prepared made-up"),
    ):
        restore(Machine(root), journals, quiet)


def test_machine_behind_a_network_stays_reachable(root: Path, journals: Path) -> None:
    lines: list[str] = []
    with prepared(Machine(root, network=True), PREPARATION, journals, lines.append):
        assert "data/aeroplane" not in state(root)
    assert any(
        line.startswith("aeroplane mode stays null: made-up is reached by the network")
        for line in lines
    )


@dataclass(frozen=True)
class Stubborn(Machine):
    """It does not accept some value."""

    refused: str = ""
    silent: bool = False

    def write(self, path: str, text: str) -> None:
        if text == self.refused and not self.silent:
            raise Refused(f"{path} does not accept `{text}`: Invalid argument")
        if text != self.refused:
            super().write(path, text)


@pytest.mark.parametrize("silent", [False, True])
def test_value_that_is_not_accepted_is_reported_and_the_rest_is_set(
    root: Path, journals: Path, silent: bool
) -> None:
    before, lines = state(root), list[str]()
    shell = Stubborn(root, refused="performance", silent=silent)
    with prepared(shell, PREPARATION, journals, lines.append):
        assert state(root)["sys/kernel/hugepages"] == "never"
    assert sum("governor" in line and "interactive" in line for line in lines) == 2
    assert state(root) == before


def test_former_value_that_is_not_accepted_stays_in_the_journal(root: Path, journals: Path) -> None:
    before = state(root)
    with prepared(Machine(root), PREPARATION, journals, quiet, leave=True):
        pass
    with pytest.raises(WorkError, match="did not accept the former value of governor") as caught:
        restore(Stubborn(root, refused="interactive"), journals, quiet)
    assert caught.value.remedy == "mepof device restore --adb made-up"
    assert state(root)["data/thermald"] == "running"
    restore(Machine(root), journals, quiet)
    assert state(root) == before


def test_what_is_gone_is_reported_and_forgotten(root: Path, journals: Path) -> None:
    with prepared(Machine(root), PREPARATION, journals, quiet, leave=True):
        pass
    (root / "sys/kernel/hugepages").unlink()
    lines: list[str] = []
    restore(Machine(root), journals, lines.append)
    assert "huge pages is gone; it was always" in lines
    assert not list(journals.glob("*.jsonl"))


@dataclass(frozen=True)
class Starting(Machine):
    """Its system does not answer yet."""

    def run(self, argv: Sequence[str], timeout: float) -> Ran:
        return Ran(1, "Can't find service")


def test_a_setting_that_cannot_be_read_yet_stays_in_the_journal(root: Path, journals: Path) -> None:
    before = state(root)
    with prepared(Machine(root), PREPARATION, journals, quiet, leave=True):
        pass
    with pytest.raises(WorkError, match="did not accept the former value of"):
        restore(Starting(root), journals, quiet)
    restore(Machine(root), journals, quiet)
    assert state(root) == before


@dataclass(frozen=True)
class Flaky(Watched):
    """Its connection breaks; it may come back."""

    comes_back: bool = True

    def reconnect(self) -> None:
        if not self.comes_back:
            raise LostConnection("made-up cannot be reached")


def lost() -> None:
    raise LostConnection("made-up cannot be reached")


def test_connection_that_comes_back_is_not_reported(root: Path, journals: Path) -> None:
    before = state(root)
    for number in range(acts_of(root, journals)):
        shell = Flaky(root, at=lost)
        shell.from_now(number=number)
        with prepared(shell, PREPARATION, journals, quiet):
            assert state(root)["data/thermald"] == "stopped"
        assert state(root) == before


def test_lost_connection_names_the_command_that_restores(root: Path, journals: Path) -> None:
    before = state(root)
    shell = Flaky(root, at=lost, comes_back=False)
    with (
        pytest.raises(WorkError, match="8 settings are not restored") as caught,
        prepared(shell, PREPARATION, journals, quiet),
    ):
        shell.from_now(every=True)
    assert caught.value.remedy == "mepof device restore --adb made-up"
    restore(Machine(root), journals, quiet)
    assert state(root) == before


def test_rebooted_machine_is_prepared_again_and_the_first_values_come_back(
    root: Path, journals: Path
) -> None:
    before = state(root)
    boot_id = root / "proc/sys/kernel/random/boot_id"
    shell = Machine(
        root,
        volatile={
            boot_id: "second",
            root / "sys/kernel/hugepages": "always",
            # What an update set meanwhile is not what the user had.
            root / f"{POLICY}0/scaling_governor": "schedutil",
            root / "data/up": "1\n",
        },
    )
    with prepared(shell, PREPARATION, journals, quiet) as machine:
        machine.reboot(now=lambda: 0.0, pause=no_pause)
        assert boot_id.read_text() == "second"
        assert state(root)[f"{POLICY}0/scaling_governor"] == "performance"
        assert state(root)["sys/kernel/hugepages"] == "never"
    after = state(root)
    del after["data/up"], after["proc/sys/kernel/random/boot_id"]
    del before["proc/sys/kernel/random/boot_id"]
    assert after == before


def test_reboot_that_never_ends_is_an_error(root: Path, journals: Path) -> None:
    times = iter(range(0, 10_000, 100))
    with (
        prepared(Machine(root), PREPARATION, journals, quiet) as machine,
        pytest.raises(WorkError, match="was not up within 300 s"),
    ):
        machine.reboot(now=lambda: next(times), pause=lambda seconds: None)


def no_pause(seconds: float) -> None:
    raise AssertionError("it is up at once")


def test_machine_without_a_reboot_command_is_not_rebooted(root: Path, journals: Path) -> None:
    fixed = PREPARATION.model_copy(update={"reboot": None})
    with (
        prepared(Machine(root), fixed, journals, quiet) as machine,
        pytest.raises(InputError, match="does not say how to reboot"),
    ):
        machine.reboot()


def test_former_value_is_on_the_disk_before_the_change(
    root: Path, journals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    real = os.fsync

    def fsync(handle: Any) -> None:
        events.append("synced")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)

    @dataclass(frozen=True)
    class Noting(Machine):
        def write(self, path: str, text: str) -> None:
            events.append("written")
            super().write(path, text)

    with prepared(Noting(root), PREPARATION, journals, quiet, leave=True):
        pass
    assert events.count("written") == 5
    written = [i for i, event in enumerate(events) if event == "written"]
    # The line, and the directory that holds the file.
    assert all(events[i - 2 : i] == ["synced", "synced"] for i in written)


def test_names_of_machines_are_safe_as_files(tmp_path: Path) -> None:
    with FormerValues.of(tmp_path, "adb-../x:5555") as journal:
        assert journal.changes() == []
    assert [path.name for path in tmp_path.iterdir()] == ["adb-.._x_5555.lock"]


def test_local_machine_is_a_shell(tmp_path: Path) -> None:
    shell: Reachable = LocalShell(tmp_path)
    assert shell.run(("sh", "-c", "echo out; echo err >&2; exit 3"), 10) == Ran(3, "out\nerr")
    assert shell.run(("no-such-program",), 10).status == 127
    with pytest.raises(Refused, match="No such file"):
        shell.write("/absent", "1")
    assert not list(tmp_path.iterdir())
