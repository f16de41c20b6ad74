from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mepof.device.adb import AdbShell
from mepof.device.shell import LostConnection, Ran, Refused
from mepof.errors import EnvironmentLack, InputError

ADBD = Path("/usr/lib/android-sdk/platform-tools/adbd")

# What adb does to a script, without a phone: it joins words and has a shell run them there.
FAKE_ADB = """\
#!/bin/sh
echo "$*" >> {root}/asked
[ "$1" = -s ] && shift 2
if [ -e {root}/gone ]; then echo "error: device 'x' not found"; exit 1; fi
if [ -e {root}/refuses ]; then cat {root}/refuses >&2; exit 1; fi
case "$1" in
get-state) cat {root}/state ;;
shell)
    # Its two streams do not arrive in the order in which they were written.
    PATH={root}/phone:$PATH; shift
    sh -c "$*" 2>{root}/stderr | sed 's/$/'"$(cat {root}/ending)"'/'; cat {root}/stderr >&2 ;;
esac
"""


class Phone:
    """A phone that is this machine, with programs of its own."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        (directory / "host").mkdir()
        (directory / "phone").mkdir()
        self._program(directory / "host/adb", FAKE_ADB.format(root=directory))
        self.ending("")
        self.has("id", "echo 0")
        monkeypatch.setenv("PATH", f"{directory}/host:{os.environ['PATH']}")

    def has(self, name: str, script: str) -> None:
        self._program(self.directory / "phone" / name, f"#!/bin/sh\n{script}\n")

    def ending(self, text: str) -> None:
        """What stands before the end of every line, as terminals have it."""
        (self.directory / "ending").write_text(text)

    def goes(self) -> None:
        (self.directory / "gone").touch()

    def asked(self) -> str:
        return (self.directory / "asked").read_text()

    def _program(self, path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)


@pytest.fixture
def phone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Phone:
    return Phone(tmp_path, monkeypatch)


@pytest.fixture
def shell(phone: Phone) -> AdbShell:
    return AdbShell.connect("x")


@pytest.mark.parametrize("ending", ["", "\\r"])
def test_program_runs_with_its_arguments_unchanged(
    phone: Phone, shell: AdbShell, ending: str
) -> None:
    phone.ending(ending)
    words = ("two words", "'", '"$HOME"', "a;b", "", "*")
    ran = shell.run(("printf", "[%s]\\n", *words), 10)
    assert ran.status == 0
    assert ran.output.splitlines() == [f"[{word}]" for word in words]


def test_status_and_both_outputs_are_returned(shell: AdbShell) -> None:
    assert shell.run(("sh", "-c", "echo out; echo err >&2; exit 3"), 10) == Ran(3, "out\nerr\n")
    assert shell.run(("no-such-program",), 10).status == 127


def test_files_are_read_and_written_but_not_created(shell: AdbShell, tmp_path: Path) -> None:
    file = tmp_path / "with blank"
    file.write_text("no newline")
    assert shell.read(str(file)) == "no newline"
    shell.write(str(file), "it's $HOME")
    assert file.read_text() == "it's $HOME\n"
    assert shell.read(str(tmp_path / "absent")) is None
    with pytest.raises(Refused, match="it does not exist"):
        shell.write(str(tmp_path / "absent"), "1")
    assert not (tmp_path / "absent").exists()


def test_patterns_find_files(shell: AdbShell, tmp_path: Path) -> None:
    for name in ("cpu0", "cpu10", "cpufreq", "a b0"):
        (tmp_path / name).touch()
    found = shell.paths(f"{tmp_path}/cpu[0-9]*")
    assert found == (f"{tmp_path}/cpu0", f"{tmp_path}/cpu10")
    assert shell.paths(f"{tmp_path}/a b?") == (f"{tmp_path}/a b0",)
    assert shell.paths(f"{tmp_path}/none*") == ()


def test_phone_that_disappears_is_a_lost_connection(phone: Phone, shell: AdbShell) -> None:
    phone.goes()
    why = r"adb-x cannot be reached .*device 'x' not found"
    with pytest.raises(LostConnection, match=why):
        shell.read("/proc/version")
    with pytest.raises(LostConnection, match=why):
        shell.reconnect()


# As adb 34.0.5 and the transport of AOSP say it.
UNAUTHORIZED = """\
error: device unauthorized.
This adb server's $ADB_VENDOR_KEYS is not set
Try 'adb kill-server' if that seems wrong.
Otherwise check for a confirmation dialog on your device.
"""
NO_PERMISSION = """\
error: insufficient permissions for device: missing udev rules? user is in the plugdev group
See [http://developer.android.com/tools/device.html] for more information
"""


@pytest.mark.parametrize(
    ("said", "why", "remedy"),
    [
        (UNAUTHORIZED, "it does not let this machine use adb", "allow USB debugging"),
        (NO_PERMISSION, "this user may not use its USB port", "android-udev-rules"),
        ("error: device offline\n", "its adbd does not answer", "reconnect offline"),
    ],
)
def test_a_phone_that_adb_sees_and_cannot_use_says_why(
    phone: Phone, said: str, why: str, remedy: str
) -> None:
    (phone.directory / "refuses").write_text(said)
    with pytest.raises(LostConnection, match=f"adb-x cannot be reached by adb: {why}") as caught:
        AdbShell.connect("x")
    assert remedy in str(caught.value.remedy)


def test_the_question_on_a_phone_s_screen_is_not_asked_again(phone: Phone) -> None:
    (phone.directory / "refuses").write_text(UNAUTHORIZED)
    shell = AdbShell("10.0.0.7:5555", "x")
    assert not shell.present()
    assert "connect" not in phone.asked()
    with pytest.raises(LostConnection, match="does not let this machine"):
        AdbShell.connect("10.0.0.7:5555")
    assert "wait-for-device" not in phone.asked()


def test_the_serial_number_of_a_phone_is_not_taken_for_a_trouble(phone: Phone) -> None:
    (phone.directory / "refuses").write_text("error: device 'offline-1' not found\n")
    assert AdbShell("offline-1", "x").trouble() is None


def test_phone_is_named_by_its_serial_number(phone: Phone) -> None:
    assert AdbShell.connect("10.0.0.7:5555").name == "adb-10.0.0.7:5555"
    phone.has("getprop", 'test "$1" = ro.serialno && echo 0123abcd')
    assert AdbShell.connect("10.0.0.7:5555").name == "adb-0123abcd"


@pytest.mark.parametrize(
    ("serial", "by_network"),
    [
        ("0123abcd", False),
        ("emulator-5554", False),
        ("10.0.0.7:5555", True),
        ("adb-0123abcd-x1Y2z3._adb-tls-connect._tcp", True),
    ],
)
def test_address_is_distinguished_from_a_serial_number(serial: str, by_network: bool) -> None:
    assert AdbShell(serial, "phone").by_network is by_network


def test_address_is_connected_first(phone: Phone) -> None:
    AdbShell.connect("10.0.0.7:5555")
    assert phone.asked().startswith("connect 10.0.0.7:5555\n")


@pytest.mark.parametrize(
    "su", ['[ "$1" = 0 ] && shift && exec "$@"', '[ "$1" = -c ] && shift && exec sh -c "$1"']
)
def test_either_su_gives_root(phone: Phone, su: str) -> None:
    phone.has("id", "echo ${WHO:-2000}")
    phone.has("su", f"export WHO=0; {su}; exit 1")
    shell = AdbShell.connect("x")
    assert shell.run(("id", "-u"), 10) == Ran(0, "0\n")
    assert shell.run(("printf", "%s", "it's; $HOME"), 10).output == "it's; $HOME"


def test_phone_without_root_is_refused(phone: Phone) -> None:
    phone.has("id", "echo 2000")
    phone.has("su", "exit 1")
    with pytest.raises(EnvironmentLack, match="x does not give root access"):
        AdbShell.connect("x")


def test_adbd_that_was_root_is_restarted_as_root(phone: Phone, shell: AdbShell) -> None:
    shell.reconnect()
    assert "-s x root" in phone.asked()


def test_option_is_not_a_serial_number(phone: Phone) -> None:
    with pytest.raises(InputError, match="`--help` is not a serial number"):
        AdbShell.connect("--help")


def test_missing_adb_is_reported_with_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLack, match=r"adb is not installed .*apt-get install"):
        AdbShell.connect("x")


HAS_ADBD = ADBD.exists() and all(map(shutil.which, ("adb", "unshare", "ip")))


def _can_isolate() -> bool:
    return subprocess.run(["unshare", "-n", "true"], check=False).returncode == 0


# It loses an answer now and then, perhaps because adb's server also finds the daemon by itself.
@pytest.mark.adbd
@pytest.mark.skipif(not HAS_ADBD, reason="adb, adbd or iproute2 is not installed")
@pytest.mark.skipif(HAS_ADBD and not _can_isolate(), reason="no right to a network namespace")
def test_real_adbd_is_prepared_lost_and_restored(tmp_path: Path) -> None:
    """In a network of its own, for adbd is root and listens to everyone."""
    script = Path(__file__).with_name("over_adb.py")
    done = subprocess.run(
        [
            *("unshare", "-n", "-p", "-f", "--kill-child", "--mount-proc"),
            *("sh", "-c", 'ip link set lo up && exec "$@"', "sh"),
            *(sys.executable, "-m", f"tests.unit.device.{script.stem}", tmp_path),
        ],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "restored"


@pytest.mark.parametrize("state", ["device", "recovery", "sideload"])
def test_a_phone_says_which_of_its_systems_runs(phone: Phone, shell: AdbShell, state: str) -> None:
    (phone.directory / "state").write_text(f"{state}\n")
    assert shell.state() == state
    assert shell.present() == (state == "device")


def test_a_phone_that_is_gone_runs_none(phone: Phone, shell: AdbShell) -> None:
    phone.goes()
    assert shell.state() == ""
