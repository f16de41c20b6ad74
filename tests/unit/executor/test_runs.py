"""What a worker keeps for a run, and when it takes the run for ended."""

from __future__ import annotations

import asyncio

import pytest

from mepof.executor.runs import Busy, end, held, is_gone, pause_after
from mepof.plan.body import Claim


@pytest.mark.parametrize(
    ("actions", "gone"),
    [
        (("add-client", "update-graph"), False),
        (("add-client", "update-graph", "remove-client"), True),
        # A step that the scheduler was still adding when it lost the client.
        (("add-client", "remove-client", "update-graph"), True),
        (("add-client", "remove-client", "add-client", "update-graph"), False),
        (("update-graph", "update-graph"), False),  # so many that the first are forgotten
        ((), True),
    ],
)
def test_a_client_is_gone_once_the_scheduler_has_lost_it(
    actions: tuple[str, ...], gone: bool
) -> None:
    assert is_gone(actions) is gone


def test_a_long_history_is_fetched_less_often() -> None:
    assert pause_after(3) == pause_after(100)
    assert pause_after(6_000) == 60


def test_a_device_that_cannot_be_given_back_keeps_neither_itself_nor_the_others() -> None:
    given: list[str] = []

    def claim(name: str) -> Claim:
        def release() -> None:
            given.append(name)
            raise OSError(name)

        return Claim(name, lambda note, cancel: None, release)

    for name in ("a", "b"):
        with held("one", claim(name)):
            pass
    with pytest.raises(Busy), held("two", claim("a")):
        pass
    with pytest.raises(OSError, match=r"[ab]"):
        asyncio.run(end("one"))
    assert sorted(given) == ["a", "b"]
    for name in ("a", "b"):
        with held("two", claim(name)):
            pass
