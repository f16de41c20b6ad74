"""How the commands of described apps start in the guest: what ``native/launch`` reads, and the
requests that make it start, await and stop them."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mepof.app.apps import Action, App
from mepof.app.image.layers import HIDDEN
from mepof.app.image.model import Image
from mepof.app.laid import Laid, is_directory, resolve
from mepof.app.own import MAX_OWNER, OwnAction, OwnApp, Ready, Setup, Start
from mepof.app.own_files import GUEST_DIRECTORIES, GUEST_FILES
from mepof.app.starts import SEARCHED, check_start
from mepof.device import agent
from mepof.errors import InputError, WorkError

#: Where it is in the guest.
PROGRAM = "mepof/launch"
# A service that does not stop is killed, which takes up to 5 s more of the guest's time.
_GRACE_SECONDS = 10
# They expect to be the first process, as in a container.
_FIRST = frozenset(("/init", "/sbin/init", "/usr/sbin/init"))
_ENTRY_POINT = "the image's entry point"
_FOREGROUND = "start it in the foreground, without the option by which it becomes a daemon"


class ServiceFailure(WorkError):
    """A service was not ready in time, or ended before it was stopped.

    Args:
        service: its name.
    """

    def __init__(self, message: str, service: str, remedy: str | None = None) -> None:
        super().__init__(message, remedy)
        self.service = service


def command_files(
    app: OwnApp, image: Image, files: Mapping[str, Laid], arch: str
) -> dict[str, Laid]:
    """The descriptions of an app's commands for ``native/launch/command.c``, which has the format.

    Args:
        image: that the app runs in.
        files: what is laid into the guest.

    Raises:
        InputError: a command cannot start there, or its user, directory or input is unknown.
    """
    found: dict[str, Laid] = {}
    files = image.as_named(files)
    for action in app.actions:
        what = f"the action `{action.name}`"
        fields = _Fields(app, image, files, arch, what, bool(app.setup))
        limit = _field("t", _milliseconds(action.seconds))
        text = fields.of(action, action.argv, action.name) + limit
        found[f"mepof/actions/{action.name}"] = Laid(text)
    for number, setup in enumerate(app.setup):
        fields = _Fields(app, image, files, arch, f"the setup `{setup.name}`", number > 0)
        text = fields.of(setup, setup.argv, f"setup-{setup.name}") + fields.service(setup)
        found[f"mepof/setup/{setup.name}"] = Laid(text)
    return found


@dataclass(frozen=True)
class _Fields:
    """Encodes the commands of one app.

    Attributes:
        after_setup: a setup runs before, which may make files.
    """

    app: OwnApp
    image: Image
    files: Mapping[str, Laid]
    arch: str
    what: str
    after_setup: bool

    def of(self, start: Start, argv: Sequence[str], name: str) -> bytes:
        """What every command has."""
        argv = argv or self.image.argv
        if not argv:
            raise InputError(f"{self.what} has no argv, and the image has no entry point")
        variables = {
            **dict(self.image.environment),
            **self.app.environment,
            **start.environment,
        }
        self._check(argv[0], variables)
        user, group = self._owner(self.image.user if start.user is None else start.user)
        if self.app.image is not None and (home := self._home(user)):
            variables = {"HOME": home, **variables}
        given = start.input
        if given is not None and not given.startswith("/"):
            given = f"/mepof/input/{name}"
        elif given is not None:
            self._check_there("reads", given, directory=False)
        directory = start.workdir or self.image.directory
        if directory:
            self._check_there("starts in", directory, directory=True)
        return b"".join(
            (
                *(_field("a", word) for word in argv),
                *(_field("e", f"{key}={value}") for key, value in variables.items()),
                *((_field("d", directory),) if directory else ()),
                *((_field("i", given),) if given else ()),
                *((_field("u", user), _field("g", group)) if (user, group) != (0, 0) else ()),
                *((_field("n", f"user{user}"),) if self._lacks_name(user) else ()),
                *((_field("P", ""),) if self.app.image and argv[0] in _FIRST else ()),
            )
        )

    def service(self, setup: Setup) -> bytes:
        """What a service has beyond that; nothing for other commands."""
        ready = setup.ready
        if ready is None:
            return b""
        if ready.argv:
            variables = {**dict(self.image.environment), **self.app.environment}
            self._check(ready.argv[0], {**variables, **setup.environment})
        return b"".join(
            (
                _field("S", ""),
                _field("k", self._stop_signal(setup)),
                _field("t", _milliseconds(setup.seconds)),
                *_conditions(ready),
            )
        )

    def _stop_signal(self, setup: Setup) -> int:
        """The description's; of an entry point, that of the image."""
        name = setup.stop
        if "stop" not in setup.model_fields_set and not setup.argv and self.image.stop:
            name = self.image.stop.removeprefix("SIG")
        base, _, more = name.partition("+")  # RTMIN+3, of systemd
        try:
            return int(base) if base.isdecimal() else signal.Signals[f"SIG{base}"] + int(more or 0)
        except (KeyError, ValueError):
            raise InputError(
                f"{self.what} stops by {self.image.stop}, as its image says, which is not a signal",
                'name another: `stop = "TERM"`',
            ) from None

    def _check(self, program: str, variables: Mapping[str, str]) -> None:
        if "/" in program and not program.startswith("/"):
            raise InputError(f"{self.what} runs {program}", "write an absolute path")
        # What is relative to the working directory is not looked for: it is made there, if at all.
        path = variables.get("PATH")
        given = [d.strip("/") for d in (path or "").split(":") if d.startswith("/")]
        searched = SEARCHED if path is None else given
        check_start(self.what, program, self.files, self.arch, searched)

    def _check_there(self, verb: str, path: str, *, directory: bool) -> None:
        """Refuse a file or directory that the command would not find."""
        at = resolve(path.lstrip("/"), self.files)
        if self.after_setup or (at is not None and at.partition("/")[0] in HIDDEN):
            return
        if directory:
            there = at in {"", *GUEST_DIRECTORIES} or (at and is_directory(at, self.files))
        else:
            laid = self.files.get(at or "", Laid())
            there = at in {"bin/busybox", *GUEST_FILES} or laid.source is not None
        if not there:
            kind = "directory" if directory else "file"
            raise InputError(
                f"{self.what} {verb} {path}, which is not a {kind} in the guest",
                "lay it there by `directory` or `files`, or make it by a `[[setup]]`",
            )

    def _owner(self, user: int | str) -> tuple[int, int]:
        """Numbers of a user and a group."""
        name, _, group = str(user).partition(":")
        if not name or name == "0":
            number, own = 0, 0
        elif name.isascii() and name.isdigit():
            number = self._number(name)
            own = next((g for _, n, g in self._entries("passwd") if n == number), number)
        else:
            found = [(n, g) for known, n, g in self._entries("passwd") if known == name]
            if not found:
                raise InputError(
                    f"{self.what} runs as {name}, who is not in /etc/passwd",
                    "write a number, or lay an /etc/passwd with that user by `files`",
                )
            number, own = found[0]
        if not group:
            return number, own
        if group.isascii() and group.isdigit():
            return number, self._number(group)
        groups = [n for known, n, _ in self._entries("group") if known == group]
        if not groups:
            raise InputError(
                f"{self.what} runs in the group {group}, which is not in /etc/group",
                "write a number, or lay an /etc/group with that group by `files`",
            )
        return number, groups[0]

    def _number(self, text: str) -> int:
        if (number := int(text)) > MAX_OWNER:
            raise InputError(
                f"{self.what} runs as {text}, which is not the number of a user or group",
                f"write one from 0 to {MAX_OWNER}",
            )
        return number

    def _lacks_name(self, user: int) -> bool:
        """Whether the guest should know a user whom nobody named; images are left as they are."""
        named = any(number == user for _, number, _ in self._entries("passwd"))
        return user != 0 and not named and self.app.image is None

    def _home(self, user: int) -> str:
        """The home directory of a user; empty if nobody knows it."""
        for line in self._lines("passwd"):
            fields = line.split(":")
            if len(fields) > 5 and fields[2] == str(user):
                return fields[5]
        return ""

    def _lines(self, table: str) -> list[str]:
        laid = self.files.get(resolve(f"etc/{table}", self.files) or "", Laid())
        return laid.content().decode("utf-8", "replace").splitlines()

    def _entries(self, table: str) -> Iterator[tuple[str, int, int]]:
        """Names with the two numbers after them (passwd(5)), or the one (group(5)), twice."""
        for line in self._lines(table):
            name, *rest = line.split(":")
            numbers = [int(each) for each in rest[1:3] if each.isascii() and each.isdigit()]
            if numbers:
                yield name, numbers[0], numbers[-1]


def _conditions(ready: Ready) -> Iterator[bytes]:
    if ready.port is not None:
        yield _field("p", ready.port)
    if ready.output is not None:
        yield _field("o", ready.output)
    for word in ready.argv:
        yield _field("r", word)


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _field(letter: str, value: str | int) -> bytes:
    return f"{letter}{value}".encode("utf-8", "surrogateescape") + b"\0"


def request(action: Action) -> agent.Exec:
    """The request that runs an action."""
    if isinstance(action, OwnAction):
        return agent.Exec((f"/{PROGRAM}", "action", action.name), action.seconds)
    return agent.Exec(action.argv, action.seconds)


def port_requests(apps: Iterable[App]) -> tuple[agent.Put, ...]:
    """The request that lets every user listen on every port, as container runtimes do, if an app
    runs in an image; none otherwise. A kernel without networks refuses it."""
    if not any(isinstance(app, OwnApp) and app.image is not None for app in apps):
        return ()
    return (agent.Put("/proc/sys/net/ipv4/ip_unprivileged_port_start", 0o644, b"0"),)


def start_requests(setups: Sequence[Setup]) -> tuple[agent.Exec, ...]:
    """The requests that set up what actions need."""
    return tuple(
        agent.Exec(
            (f"/{PROGRAM}", "setup", each.name),
            each.seconds + (0 if each.ready is None else _GRACE_SECONDS),
        )
        for each in setups
    )


def stop_requests(setups: Sequence[Setup]) -> tuple[agent.Exec, ...]:
    """The requests that stop all services, the last one first."""
    return tuple(
        agent.Exec((f"/{PROGRAM}", "stop", each.name), each.seconds + _GRACE_SECONDS)
        for each in _services(setups)
    )


def log_requests(setups: Sequence[Setup]) -> dict[str, agent.Get]:
    """The requests that read what services wrote, by the name of the service."""
    return {
        each.name: agent.Get(f"/mepof/run/{each.name}.log")
        for each in setups
        if each.ready is not None
    }


def check_setup(
    setups: Sequence[Setup], started: Sequence[agent.Reply], stopped: Sequence[agent.Reply]
) -> tuple[str, ...]:
    """Refuse a setup that failed and services that did not live until they were stopped.

    Returns:
        What is worth knowing otherwise: of services that had to be killed.

    Raises:
        ServiceFailure: it is a service.
        WorkError: it is another setup.
    """
    for setup, asked, reply in zip(setups, start_requests(setups), started, strict=True):
        if not isinstance(reply, agent.ExecResult) or reply.status == 0:
            continue
        if setup.ready is not None and reply.status == 1:
            said = _said(setup, reply)
            is_daemon = "ended with status 0 before it was ready" in said
            raise ServiceFailure(said, setup.name, _FOREGROUND if is_daemon else None)
        try:
            agent.expect_success(_named(setup, asked), reply)
        except WorkError as error:
            raise WorkError(f"the setup {setup.name}: {error.message}", error.remedy) from error
    ended = [
        (setup, reply)
        for setup, reply in zip(_services(setups), stopped, strict=True)
        if isinstance(reply, agent.ExecResult)
    ]
    for setup, reply in ended:
        if reply.status != 0:
            raise ServiceFailure(_said(setup, reply), setup.name)
    return tuple(text for _, reply in ended if (text := reply.text.strip()))


def _said(service: Setup, reply: agent.ExecResult) -> str:
    """How a service failed, in the words of ``native/launch``, which was killed if it has none."""
    if text := reply.text.strip():
        return text
    how = "did not answer in time" if reply.status == agent.TIMED_OUT else "failed"
    return f"the service `{service.name}` {how}, and nothing says why"


def check_action(action: Action, reply: agent.ExecResult) -> None:
    """Refuse an action that did not do what its app expects.

    Raises:
        WorkError: it did not.
    """
    # As the user wrote it, not as it is launched.
    written = agent.Exec(action.argv or (_ENTRY_POINT,), action.seconds)
    expected = action.check
    if reply.status != expected.status:
        if reply.status == 0:
            raise WorkError(
                f"the action {action.name} ended with status 0 in the guest, "
                f"but its check expects {expected.status}"
            )
        try:
            agent.expect_success(written, reply)
        except WorkError as error:
            raise WorkError(f"the action {action.name}: {error.message}", error.remedy) from error
    missing = next((text for text in expected.texts if text not in reply.text), None)
    if missing is None:
        return
    if reply.truncated:
        raise WorkError(
            f"the action {action.name} did not write {missing!r}, which its check expects, in the "
            f"first {agent.OUTPUT_MIB} MiB of its output, which are all that is kept",
            "let it write less, or check its status",
        )
    raise WorkError(
        f"the action {action.name} did not write {missing!r}, which its check expects: "
        f"{agent.last_lines(reply.text)}"
    )


def _services(setups: Sequence[Setup]) -> tuple[Setup, ...]:
    return tuple(each for each in reversed(setups) if each.ready is not None)


def _named(setup: Setup, asked: agent.Exec) -> agent.Exec:
    """The request as the user wrote it, for messages."""
    return agent.Exec(setup.argv or (_ENTRY_POINT,), setup.seconds)
