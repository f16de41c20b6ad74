"""The store that an executor runs on: that of the machine, and the one that others share."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

from mepof.errors import InputError
from mepof.events import Event, Sink, StepNote
from mepof.plan.remote import Remote
from mepof.plan.shared import SharedStore
from mepof.plan.store import VARIABLE, Store


def default_shared() -> str | None:
    """``$MEPOF_SHARED_STORE``, if it is set."""
    return os.environ.get("MEPOF_SHARED_STORE") or None


# Make splits paths at the first two, and expands `$`. The build of objtool has them in `-Wp,`, in
# goals of make and in values of its variables. Kbuild gives its shell paths without quotes.
_NOT_IN_PATHS = re.compile(r"""[\s:$,%='"`\\()<>&;|]""")
_SIGNS = {":": "colon", ",": "comma"}


def check_store(root: Path, shared: str | None) -> None:
    """Refuse a store before anything runs; kernels are built in it.

    Raises:
        InputError: it cannot be written, its path is one that make cannot use, or the URL is wrong.
        EnvironmentLack: the library for the URL is missing.
    """
    store = Store(root)
    for path in (str(store.root), os.path.realpath(store.root)):  # make follows links
        if why := _unfit(path):
            shown = " ".join(os.fsencode(path).decode(errors="replace").split())
            raise InputError(
                f"kernels cannot be built in the store {shown}: its path {why}",
                "choose another one with --store or MEPOF_STORE",
            )
    store.check()
    if shared is not None:
        Remote(shared)


def _unfit(path: str) -> str | None:
    """Why kernels cannot be built below a path, if they cannot."""
    if any("\udc80" <= each <= "\udcff" for each in path):
        return "is not UTF-8"
    if (found := _NOT_IN_PATHS.search(path)) is None:
        return None
    sign = found[0]
    return f"contains a {_SIGNS.get(sign, 'blank' if sign.isspace() else f'`{sign}`')}"


@contextlib.contextmanager
def store_of(
    root: Path, shared: str | None, sink: Sink, cancel: threading.Event | None = None
) -> Iterator[Store]:
    """The store in a directory, with what others share behind it.

    In the block it is the default store, in whose cache apps find their packages and images.

    Args:
        shared: URL of that.
        sink: receives what is said about it, from any thread.
        cancel: set it to stop waiting for its server.
    """
    with _default(root):
        if shared is None:
            yield Store(root)
            return
        store = SharedStore(
            root, Remote(shared, cancel), lambda text: sink(StepNote("shared store", text))
        )
        with contextlib.closing(store):
            yield store


@contextlib.contextmanager
def _default(root: Path) -> Iterator[None]:
    """Have :func:`mepof.plan.store.default_store` answer with a directory."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(root.absolute())
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def one_at_a_time(sink: Sink) -> Sink:
    """A sink that any thread may call."""
    lock = threading.Lock()

    def guarded(event: Event) -> None:
        with lock:
            sink(event)

    return guarded
