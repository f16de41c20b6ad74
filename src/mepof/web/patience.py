"""What takes longer than a view may is done beside the views; whoever asks meanwhile is told so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from starlette.exceptions import HTTPException

T = TypeVar("T")

_PATIENCE_SECONDS = 0.1
_REFRESH_SECONDS = "1"


class Unfinished(HTTPException):
    """What was asked for is being read; the browser asks again by itself."""

    def __init__(self, text: str) -> None:
        headers = {"retry-after": _REFRESH_SECONDS, "refresh": _REFRESH_SECONDS}
        super().__init__(503, text, headers)


class Beside:
    """Work beside the views, by key; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[Any]] = {}

    def begin(self, key: str, work: Callable[[], T]) -> Future[T]:
        """Begin the work of that key, unless it is under way."""
        with self._lock:
            known = self._under_way.get(key)
            if known is not None:
                return known
            future: Future[T] = Future()
            self._under_way[key] = future

        def perform() -> None:
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            finally:
                with self._lock:
                    del self._under_way[key]

        # A daemon: the end of the server does not wait for it.
        threading.Thread(target=perform, name=key, daemon=True).start()
        return future

    def result(self, key: str, work: Callable[[], T], text: str) -> T:
        """What the work gives, which should remember it.

        Args:
            text: says what is being read.

        Raises:
            Unfinished: it takes longer.
            Exception: what ended the work.
        """
        return finished(self.begin(key, work), lambda: text)


def finished(future: Future[T], text: Callable[[], str]) -> T:
    """The result of a future that has one soon.

    Raises:
        Unfinished: it takes longer; ``text`` says what is being read.
        Exception: what ended the work.
    """
    try:
        return future.result(_PATIENCE_SECONDS)
    except TimeoutError:
        if future.done():  # in between, or the work itself ended with it
            return future.result()
        raise Unfinished(text()) from None
