"""A machine over ssh, which a script on PATH stands in for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mepof.device.shell import LostConnection, Ran
from mepof.device.ssh import SshShell
from mepof.errors import EnvironmentLack, InputError

# What ssh does to a command, without a machine: the user's shell there runs it.
FAKE_SSH = """\
#!/bin/sh
echo "$*" >> {root}/asked
while [ "$1" != -- ]; do shift; done
if [ -e {root}/gone ]; then echo "ssh: connect to host $2 port 22: No route to host"; exit 255; fi
shift 2
PATH={root}/there:$PATH
exec sh -c "$*"
"""
SUDO = '#!/bin/sh\nshift\nPATH={root}/asroot:$PATH exec "$@"\n'


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose user is root."""
    program(tmp_path / "here/ssh", FAKE_SSH.format(root=tmp_path))
    program(tmp_path / "there/id", "#!/bin/sh\necho 0\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/here:{os.environ['PATH']}")
    return tmp_path


def program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_program_runs_with_its_arguments_unchanged(machine: Path) -> None:
    shell = SshShell.connect("root@box")
    words = ("two words", "'", '"$HOME"', "a;b", "", "*")
    ran = shell.run(("printf", "[%s]\\n", *words), 10)
    assert ran == Ran(0, "".join(f"[{word}]\n" for word in words))


def test_a_program_may_end_as_ssh_does_when_it_fails(machine: Path) -> None:
    """perf ends with 255 where it may not count."""
    shell = SshShell.connect("box")
    assert shell.run(("sh", "-c", "echo out; echo err >&2; exit 255"), 10) == Ran(255, "out\nerr\n")


def test_nothing_is_asked_of_a_person(machine: Path) -> None:
    SshShell.connect("box")
    assert "-o BatchMode=yes" in (machine / "asked").read_text()


def test_sudo_gives_root_where_the_user_is_not(machine: Path) -> None:
    program(machine / "there/id", "#!/bin/sh\necho 1000\n")
    program(machine / "asroot/id", "#!/bin/sh\necho 0\n")
    program(machine / "there/sudo", SUDO.format(root=machine))
    shell = SshShell.connect("box")
    assert shell.prefix == ("sudo", "-n", "sh", "-c")
    file = machine / "it's"
    file.write_text("old\n")
    shell.write(str(file), "new $HOME")
    assert shell.read(str(file)) == "new $HOME\n"


def test_a_machine_without_root_is_refused(machine: Path) -> None:
    program(machine / "there/id", "#!/bin/sh\necho 1000\n")
    program(machine / "there/sudo", "#!/bin/sh\necho sudo: a password is required >&2; exit 1\n")
    with pytest.raises(EnvironmentLack, match="box does not give root access"):
        SshShell.connect("box")


@pytest.mark.parametrize("host", ["", "-oProxyCommand=x"])
def test_an_option_is_not_a_host(machine: Path, host: str) -> None:
    with pytest.raises(InputError, match="is not a host"):
        SshShell.connect(host)


def test_a_machine_that_is_gone_is_a_lost_connection(machine: Path) -> None:
    shell = SshShell.connect("box")
    (machine / "gone").touch()
    with pytest.raises(LostConnection, match=r"box cannot be reached by ssh: .*No route to host"):
        shell.read("/proc/version")
    clock = iter((0.0, 30.0, 61.0))
    pauses: list[float] = []
    with pytest.raises(LostConnection):
        shell.reconnect(lambda: next(clock), pauses.append)
    assert pauses == [1.0]


def test_a_machine_that_comes_back_is_reached_again(machine: Path) -> None:
    shell = SshShell.connect("box")
    (machine / "gone").touch()
    shell.reconnect(lambda: 0.0, lambda seconds: (machine / "gone").unlink())


def test_a_missing_ssh_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(EnvironmentLack, match="ssh is not installed") as error:
        SshShell.connect("box")
    assert error.value.remedy == "apt-get install openssh-client"
