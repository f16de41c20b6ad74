"""Commands of described apps: how they are written for the guest, started, and judged."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mepof.app.image.model import Image
from mepof.app.laid import Laid
from mepof.app.launch import check_action, check_setup, command_files, start_requests, stop_requests
from mepof.app.own import OwnApp, load_own
from mepof.device import agent
from mepof.errors import InputError, WorkError
from mepof.kernel.overlay import native_directory

SHELL = {
    "bin/busybox": Laid(b""),
    "etc/passwd": Laid(b"web:x:7:8::/:\n"),
    "etc/group": Laid(b""),
    "srv": Laid(),
    "usr/share/words": Laid(b""),
}


def app_of(directory: Path, text: str) -> OwnApp:
    path = directory / "app.toml"
    path.write_text('title = "Shop"\n' + text)
    return load_own(path)


def action(*lines: str, argv: str = '["/bin/busybox", "cat"]') -> str:
    seconds = () if any("seconds" in line for line in lines) else ("seconds = 5",)
    return "\n".join(('[[action]]\nname = "a"', f"argv = {argv}", *seconds, *lines, ""))


def setup(*lines: str, argv: str = '["/bin/busybox", "sleep", "60"]', seconds: float = 5) -> str:
    text = f'[[setup]]\nname = "s"\nargv = {argv}\nseconds = {seconds}'
    return "\n".join((text, *lines, ""))


def fields(app: OwnApp, name: str, image: Image | None = None) -> list[str]:
    files = command_files(app, image or Image(), SHELL, "x86-64")
    return files[f"mepof/{name}"].content().decode().split("\0")[:-1]


def test_a_command_has_input_environment_directory_and_user(tmp_path: Path) -> None:
    app = app_of(
        tmp_path,
        '[environment]\nA = "1"\nB = "2"\n'
        + action('input = "x.sql"', 'environment = {B = "3"}', 'workdir = "/srv"', 'user = "web"'),
    )
    assert fields(app, "actions/a") == [
        *("a/bin/busybox", "acat", "eA=1", "eB=3", "d/srv", "i/mepof/input/a", "u7", "g8"),
        "t5000",
    ]


def test_an_image_gives_what_the_description_leaves_open(tmp_path: Path) -> None:
    image = Image({}, ("busybox", "true"), (("PATH", "/bin"), ("A", "1")), "/srv", "5:6")
    text = '[[action]]\nname = "a"\nseconds = 5\nenvironment = {A = "2"}\n'
    app = app_of(tmp_path, 'image = "oci"\n' + text)
    assert fields(app, "actions/a", image) == [
        *("abusybox", "atrue", "ePATH=/bin", "eA=2", "d/srv", "u5", "g6", "t5000"),
    ]
    with pytest.raises(InputError, match="the action `a` has no argv, and the image has no entry"):
        fields(app, "actions/a", Image())


def test_a_command_in_an_image_has_the_home_of_its_user(tmp_path: Path) -> None:
    image = Image({}, ("busybox", "true"), (("PATH", "/bin"),), None, "web")
    text = '[[action]]\nname = "a"\nseconds = 5\n'
    app = app_of(tmp_path, 'image = "oci"\n' + text)
    assert "eHOME=/" in fields(app, "actions/a", image)
    own = replace(image, environment=(*image.environment, ("HOME", "/own")))
    homes = [each for each in fields(app, "actions/a", own) if "HOME" in each]
    assert homes == ["eHOME=/own"]


def test_users_are_looked_up_where_a_link_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nix = {"nix/passwd": SHELL["etc/passwd"], "etc/passwd": Laid(link="/nix/passwd")}
    monkeypatch.setattr(f"{__name__}.SHELL", SHELL | nix)
    app = app_of(tmp_path, action('user = "web"'))
    assert {"u7", "g8"} <= {*fields(app, "actions/a")}


@pytest.mark.parametrize(
    ("stop", "written", "number"),
    [
        ("", "", signal.SIGTERM),
        ("SIGQUIT", "", signal.SIGQUIT),
        ("2", "", signal.SIGINT),
        ("SIGRTMIN+3", "", signal.SIGRTMIN + 3),
        ("SIGQUIT", 'stop = "TERM"', signal.SIGTERM),
        ("SIGQUIT", 'argv = ["busybox"]', signal.SIGTERM),
    ],
)
def test_an_entry_point_stops_as_its_image_says(
    tmp_path: Path, stop: str, written: str, number: int
) -> None:
    image = Image({}, ("busybox",), (("PATH", "/bin"),), stop=stop)
    text = f'image = "oci"\n[[setup]]\nname = "s"\nseconds = 5\nready = {{}}\n{written}\n'
    app = app_of(tmp_path, text + action())
    assert f"k{int(number)}" in fields(app, "setup/s", image)
    with pytest.raises(InputError, match="stops by SIGX, as its image says, which is not a signal"):
        fields(
            app_of(tmp_path, text.replace(written, "") + action()),
            "setup/s",
            replace(image, stop="SIGX"),
        )


def test_a_service_says_when_it_is_ready(tmp_path: Path) -> None:
    ready = 'ready = { port = 80, output = "up", argv = ["/bin/busybox", "true"] }'
    app = app_of(tmp_path, setup(ready, 'stop = "INT"') + action())
    assert fields(app, "setup/s")[3:] == [
        *("S", f"k{int(signal.SIGINT)}", "t5000", "p80", "oup", "r/bin/busybox", "rtrue"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (action('user = "nobody"'), "the action `a` runs as nobody, who is not in /etc/passwd"),
        (action('user = "4294967296"'), "runs as 4294967296, which is not the number of a user"),
        (action('user = "0:99999999999"'), "runs as 99999999999, which is not the number of"),
        (
            action('environment = {PATH = ""}', argv='["busybox", "cat"]'),
            "the action `a` runs busybox, which is not in the guest",
        ),
        (
            action('environment = {PATH = "bin"}', argv='["busybox", "cat"]'),
            "the action `a` runs busybox, which is not in the guest",
        ),
        (action('user = "web:wheel"'), "runs in the group wheel, which is not in /etc/group"),
        (action(argv='["./run"]'), r"the action `a` runs \./run"),
        (setup(argv='["/no"]') + action(), "the setup `s` runs /no, which is not in the guest"),
        (
            setup('ready = { argv = ["/no"] }') + action(),
            "the setup `s` runs /no, which is not in the guest",
        ),
        (action('workdir = "/no"'), "the action `a` starts in /no, which is not a directory in"),
        (action('workdir = "/usr/share/words"'), "starts in /usr/share/words, which is not a dir"),
        (action('input = "/no"'), "the action `a` reads /no, which is not a file in the guest"),
        (action('input = "/usr"'), "the action `a` reads /usr, which is not a file in the guest"),
        (setup('workdir = "/no"') + action(), "the setup `s` starts in /no, which is not a"),
    ],
)
def test_a_command_that_cannot_start_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        command_files(app_of(tmp_path, text), Image(), SHELL, "x86-64")


@pytest.mark.parametrize(
    "text",
    [
        action('workdir = "/tmp/made"', 'input = "/dev/zero"'),
        action('workdir = "/root"', 'input = "/bin/busybox"'),
        action('workdir = "/"', 'input = "/usr/share/words"'),
        setup() + action('workdir = "/made"', 'input = "/made/rows"'),
    ],
)
def test_a_command_may_start_in_what_the_guest_has_or_a_setup_makes(
    tmp_path: Path, text: str
) -> None:
    assert command_files(app_of(tmp_path, text), Image(), SHELL, "x86-64")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (setup('stop = "INT"') + action(), "only a service has `stop`"),
        (setup("ready = {}", 'stop = "SIGINT"') + action(), "must be a signal's name"),
        (setup("ready = {port = 0}") + action(), "must be greater than or equal to 1"),
        (setup() + setup() + action(), "`s` occurs twice"),
        (action('environment = {"A=" = "x"}'), "`A=` cannot be a variable"),
        (action('workdir = "srv"'), "must be an absolute path in the guest"),
        (action("user = -1"), "must be from 0"),
        (
            'packages = ["redis-tools=5:7.0"]\n' + action(),
            ":2: `packages`: `redis-tools=5:7.0` names a version, which .* write `redis-tools`",
        ),
        ('packages = ["../x=1"]\n' + action(), "`../x=1` is not the name of a Debian package"),
        ('packages = ["../x"]\n' + action(), "`../x` is not the name of a Debian package"),
    ],
)
def test_a_wrong_setup_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        app_of(tmp_path, text)
    assert "\n" not in str(raised.value)


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("launch")
    source = native_directory() / "launch"
    subprocess.run(["make", "-s", "-C", source, f"OUT={out}", "GUEST_CC=gcc"], check=True)
    return out / "launch"


class Guest:
    """The launcher on this machine, with its commands in a directory."""

    def __init__(self, launcher: Path, root: Path) -> None:
        self.launcher, self.root = launcher, root
        self.app: OwnApp | None = None

    def describe(self, text: str) -> None:
        self.app = app_of(self.root, text)
        for path, laid in command_files(self.app, Image(), SHELL, "x86-64").items():
            file = self.root / path.removeprefix("mepof/")
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(laid.content())

    def run(self, *words: str) -> agent.ExecResult:
        done = subprocess.run(
            [self.launcher, *words],
            env={**os.environ, "LAUNCH_ROOT": str(self.root)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=60,
        )
        return agent.ExecResult(done.returncode, 0, done.stdout, False)

    def judge(self) -> tuple[str, ...]:
        assert self.app is not None
        started = [self.run(*each.argv[1:]) for each in start_requests(self.app.setup)]
        self.done = self.run("action", "a")
        stopped = [self.run(*each.argv[1:]) for each in stop_requests(self.app.setup)]
        return check_setup(self.app.setup, started, stopped)


@pytest.fixture
def guest(launcher: Path, tmp_path: Path) -> Iterator[Guest]:
    made = Guest(launcher, tmp_path)
    yield made
    made.run("stop", "s")


def script(text: str) -> str:
    return f"""["/bin/busybox", "sh", "-c", '''{text}''']"""


def test_input_environment_and_directory_reach_the_program(guest: Guest, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("words\n")
    command = action(
        f'input = "{tmp_path}/in"',
        'environment = {A = "b c"}',
        'workdir = "/usr"',
        argv=script('cat; echo "$A"; pwd'),
    )
    guest.describe(command)
    assert guest.run("action", "a").text == "words\nb c\n/usr\n"


def test_a_service_lives_while_actions_run_and_is_stopped(guest: Guest) -> None:
    up = script("echo up; exec /bin/busybox sleep 60")
    guest.describe(setup('ready = {output = "up"}', argv=up) + action(argv=script("echo did")))
    assert guest.judge() == ()
    assert (guest.done.status, guest.done.text) == (0, "did\n")
    assert (guest.root / "run/s.stopped").read_text() == "was killed by signal 15"
    # Those of another app in the same boot are not broken by that.
    assert guest.run("action", "a").text == "did\n"
    assert guest.judge() == ()


@pytest.mark.parametrize(
    ("service", "message"),
    [
        (
            setup("ready = {port = 1}", seconds=0.2),
            "`s` was not ready within 0.2 s, because port 1 of 127.0.0.1 and ::1 accepted no "
            "connection: no output",
        ),
        (
            setup(
                'ready = {output = "up"}',
                argv=script("echo u; exec /bin/busybox sleep 60"),
                seconds=0.2,
            ),
            "`s` was not ready within 0.2 s, because it did not write `up`: u",
        ),
        (
            setup('ready = {output = "up"}', argv=script("echo bad config; exit 3")),
            "the service `s` ended with status 3 before it was ready: bad config",
        ),
        (
            setup('ready = {argv = ["/bin/busybox", "sleep", "60"]}', seconds=0.2),
            "`s` was not ready within 0.2 s, because `/bin/busybox` did not succeed: no output",
        ),
        (setup(argv=script("echo no rows; exit 4")), "the setup s: .*status 4.*: no rows"),
    ],
)
def test_a_setup_that_fails_is_named_and_no_action_runs(
    guest: Guest, service: str, message: str
) -> None:
    guest.describe(service + action(argv=script("echo did")))
    with pytest.raises(WorkError, match=message):
        guest.judge()
    assert (guest.done.status, guest.done.text) == (125, "the setup `s` failed\n")


def test_a_service_that_becomes_a_daemon_has_a_remedy(guest: Guest) -> None:
    guest.describe(setup('ready = {output = "up"}', argv=script("exit 0")) + action())
    with pytest.raises(WorkError, match="ended with status 0 before it was ready") as raised:
        guest.judge()
    assert "in the foreground" in (raised.value.remedy or "")


def test_a_service_that_dies_while_actions_run_is_named(guest: Guest) -> None:
    dying = script("echo up; read x < fifo; echo out of rows; exit 9")
    os.mkfifo(guest.root / "fifo")
    guest.describe(
        setup('ready = {output = "up"}', f'workdir = "{guest.root}"', argv=dying)
        + action(
            f'workdir = "{guest.root}"',
            argv=script("echo x > fifo; until test -e run/s.ended; do :; done"),
        )
    )
    with pytest.raises(WorkError, match="`s` ended with status 9 before it was stopped: out of"):
        guest.judge()


def test_a_service_that_does_not_stop_is_killed_and_reported(guest: Guest) -> None:
    stubborn = script('trap "" TERM; echo up; while :; do /bin/busybox sleep 1; done')
    guest.describe(setup('ready = {output = "up"}', argv=stubborn, seconds=0.5) + action())
    (told,) = guest.judge()
    assert told == "the service `s` did not stop within 0.5 s of signal 15, and was killed"
    assert (guest.root / "run/s.stopped").read_text() == "was killed by signal 9"


def test_a_measured_action_prints_its_result_line_above_what_it_wrote(guest: Guest) -> None:
    guest.describe(action(argv=script("echo one; echo two >&2; exit 3")))
    done = guest.run("measure", "a")
    head, *rest = done.text.splitlines()
    assert re.fullmatch(r"case=a operations=1 elapsed_ns=\d+ check=ok", head)
    assert (done.status, rest) == (3, ["one", "two"])
    guest.describe(action(argv=script("kill -9 $$")))
    assert guest.run("measure", "a").status == 128 + 9
    guest.describe(setup(argv=script("exit 4")) + action())
    guest.run("setup", "s")
    done = guest.run("measure", "a")
    assert (done.status, done.text) == (125, "the setup `s` failed\n")


def test_a_measured_action_that_reaches_its_limit_tells_what_it_wrote(guest: Guest) -> None:
    guest.describe(action("seconds = 0.3", argv=script("echo one; exec /bin/busybox sleep 60")))
    words = [str(guest.launcher), "measure", "a"]
    environment = {**os.environ, "LAUNCH_ROOT": str(guest.root)}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"one\n"
        assert running.poll() is None, "the agent's limit ends it"
        running.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_has_a_name_and_opens_its_own_output(launcher: Path, tmp_path: Path) -> None:
    tables = {"passwd": "root:x:0:0::/:", "group": "root:x:0:\n"}
    for name, text in tables.items():
        (tmp_path / "etc" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "etc" / name).write_text(text)
    (tmp_path / "mepof").mkdir()
    guest = Guest(launcher, tmp_path / "mepof")
    guest.describe(
        action('user = "1000:50"', argv=script("echo out > /dev/stdout; echo err > /dev/stderr"))
    )
    for _ in range(2):
        assert guest.run("action", "a").text == "out\nerr\n"
    known = {name: (tmp_path / "etc" / name).read_text() for name in tables}
    assert known == {
        "passwd": "root:x:0:0::/:\nuser1000:x:1000:50::/tmp:/bin/sh\n",
        "group": "root:x:0:\nuser1000:x:50:\n",
    }


@pytest.mark.parametrize(
    ("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_a_service_may_listen_on_either_loopback_address(
    guest: Guest, family: socket.AddressFamily, address: str
) -> None:
    with socket.socket(family) as server:
        if family == socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server.bind((address, 0))
        server.listen()
        port = server.getsockname()[1]
        guest.describe(setup(f"ready = {{ port = {port} }}") + action())
        assert guest.run("setup", "s").status == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make namespaces")
@pytest.mark.parametrize("word", ["action", "measure"])
def test_an_init_of_an_image_is_the_first_process(
    launcher: Path, tmp_path: Path, word: str
) -> None:
    (tmp_path / "mepof/actions").mkdir(parents=True)
    (tmp_path / "init").write_text("of the guest")
    (tmp_path / "mepof/init").write_text("of the image")
    command = f"a/bin/busybox\0ash\0a-c\0aecho $$; cat {tmp_path}/init /proc/1/comm; exit 3\0P\0"
    (tmp_path / "mepof/actions/a").write_text(command)
    done = Guest(launcher, tmp_path / "mepof").run(word, "a")
    assert (done.status, done.text.split("\n")[-3:]) == (3, ["1", "of the imagebusybox", ""])
    assert (tmp_path / "init").read_text() == "of the guest"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make namespaces")
def test_an_init_of_an_image_is_a_service(launcher: Path, tmp_path: Path) -> None:
    (tmp_path / "setup").mkdir()
    loop = 'trap "echo ended; exit" TERM; echo up as $$; while :; do sleep 0.1; done'
    text = f"a/bin/busybox\0ash\0a-c\0a{loop}\0P\0S\0k15\0t9000\0oup as 1\0"
    (tmp_path / "setup/s").write_text(text)
    guest = Guest(launcher, tmp_path)
    assert [guest.run(word, "s").status for word in ("setup", "stop")] == [0, 0]
    assert (tmp_path / "run/s.log").read_text() == "up as 1\nended\n"


def test_a_check_says_that_the_end_of_a_long_output_is_not_kept(tmp_path: Path) -> None:
    app = app_of(tmp_path, action('check = {output = "done"}'))
    reply = agent.ExecResult(0, 0, b"line\n", truncated=True)
    with pytest.raises(WorkError, match="'done', which its check expects, in the first 4 MiB"):
        check_action(app.actions[0], reply)
    check_action(app.actions[0], agent.ExecResult(0, 0, b"done\n", truncated=True))


def test_a_program_that_does_not_exist_is_named(guest: Guest) -> None:
    guest.describe(action('workdir = "/tmp/none"'))
    done = guest.run("action", "a")
    assert done.status == 127 and "cannot enter /tmp/none: No such file" in done.text
