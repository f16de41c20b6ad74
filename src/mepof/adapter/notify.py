"""Tells people and programs what became of a release.

Messages wait in the history until they are delivered, so that none is lost with its watcher. One
that was delivered just before a watcher was killed is delivered again, under the same identifier.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from mepof.adapter.history import Entry, History, Message
from mepof.adapter.watched import Hook, Task
from mepof.adapter.webhook import Answer, send
from mepof.errors import Interrupted, MepofError
from mepof.source.protocol import Workshop

MAX_DELIVERIES = 10
_FIRST_WAIT, _MAX_WAIT = 30.0, 6 * 3600.0
_COMMAND = "command"
_COMMAND_SECONDS = 60.0


def messages(
    task: Task, entry: Entry, state: str, details: Mapping[str, object], now: str
) -> tuple[Message, ...]:
    """The messages about a release, one for each who is told.

    Args:
        details: beside the state, the follow, the release and its address.
        now: ISO 8601 in UTC.
    """
    data = {
        "state": state,
        "follow": entry.follow,
        "release": entry.name,
        "address": entry.address,
        **details,
    }
    body = json.dumps({"type": f"release.{state}", "timestamp": now, "data": data})
    targets = [*([_COMMAND] if task.watched.notify else []), *(hook.url for hook in task.hooks)]
    return tuple(
        Message(f"msg_{sha256(f'{target} {body}'.encode()).hexdigest()[:32]}", target, body)
        for target in targets
    )


@dataclass(frozen=True)
class Messenger:
    """Delivers the messages of a history.

    Attributes:
        now: seconds since the epoch.
        say: shows the user a line.
    """

    task: Task
    workshop: Workshop
    now: Callable[[], float]
    say: Callable[[str], None]

    def deliver(self, history: History) -> None:
        """Deliver what is due; what is not taken is tried again, after growing waits with jitter.

        Raises:
            Interrupted: the user asked to stop.
        """
        for message in history.messages(self.now()):
            try:
                answer = self._deliver(message)
            except Interrupted:
                raise
            except MepofError as error:
                answer = Answer(False, reason=str(error))
            if answer.accepted:
                history.delivered(message)
                continue
            attempts = message.attempts + 1
            told = f"the notification of {self._shown(message)} failed: {answer.reason}"
            if answer.final or attempts >= MAX_DELIVERIES:
                history.delivered(message)
                self.say(f"{told}; given up after {attempts} attempts")
                continue
            wait = min(_MAX_WAIT, max(_FIRST_WAIT * 2.0**message.attempts, answer.wait or 0.0))
            wait *= random.uniform(1.0, 1.5)
            history.postpone(message, self.now() + wait)
            self.say(f"{told}; again in about {wait:.0f} s")

    def _deliver(self, message: Message) -> Answer:
        if message.target == _COMMAND:
            return self._call(message)
        hook = self._hook(message)
        if hook is None:
            return Answer(False, final=True, reason="it is no longer in the file")
        return send(
            hook.url,
            hook.key,
            message.id,
            message.body,
            int(self.now()),
            self.workshop.work,
            self.workshop.run,
        )

    def _call(self, message: Message) -> Answer:
        if not self.task.watched.notify:
            return Answer(False, final=True, reason="it is no longer in the file")
        data = json.loads(message.body)["data"]
        if shutil.which(self.task.watched.notify[0]) is None:
            return Answer(False, reason=f"there is no program {self.task.watched.notify[0]}")
        argv = [*self.task.watched.notify, data["state"], data["release"], json.dumps(data)]
        done = self.workshop.run(argv, check=False, timeout=_COMMAND_SECONDS)
        return Answer(done.status == 0, reason=f"it ended with status {done.status}")

    def _hook(self, message: Message) -> Hook | None:
        return next((hook for hook in self.task.hooks if hook.url == message.target), None)

    def _shown(self, message: Message) -> str:
        hook = self._hook(message)
        return (
            hook.shown
            if hook is not None
            else "the command"
            if message.target == _COMMAND
            else "a webhook"
        )
