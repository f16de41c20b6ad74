"""Which steps from one block of code to the next enter the kernel."""

from __future__ import annotations

import ctypes
import re
from ctypes import c_bool, c_uint32, c_uint64

import pytest

from .conftest import NATIVE

CALL, CALL_RETURN, EVENT_RETURN = 1, 2, 3
TRANSFERS = re.findall(r"TRANSFER_(\w+),", (NATIVE / "tcg-plugin" / "decode.h").read_text())
NEXT, TARGET, REPEATED, WITHIN, HANDLER = 0x1014, 0x2000, 0x1010, 0x1008, 0xFFFFFF8000000200
SYSTEM_CALL, INTERRUPT = 82, 715


class Costs(ctypes.Structure):
    _fields_ = tuple(
        (name, c_uint32)
        for name in ("system_call", "system_return", "interrupt", "interrupt_return", "swap_base")
    )


COSTS = Costs(SYSTEM_CALL, 75, INTERRUPT, 330, 26)


def into(
    model: ctypes.CDLL,
    to: int,
    transfer: str = "NONE",
    crossing: int = 0,
    *,
    repeats: bool = False,
    from_kernel: bool = True,
    ended: bool = True,
    to_kernel: bool = True,
    handler: int = 0,
) -> int:
    """Cycles of entering the kernel between the harness's block and one that begins at ``to``."""
    last = c_uint64(handler)
    found: int = model.run_crossing(
        ctypes.byref(COSTS),
        c_uint32(TRANSFERS.index(transfer)),
        c_uint32(crossing),
        c_bool(repeats),
        c_bool(from_kernel),
        c_bool(ended),
        c_uint64(to),
        c_bool(to_kernel),
        ctypes.byref(last),
    )
    assert last.value == (to if found == INTERRUPT else handler)
    return found


@pytest.mark.parametrize(
    ("transfer", "ways"),
    [
        ("NONE", {NEXT}),
        ("CONDITIONAL", {NEXT, TARGET}),
        ("JUMP", {TARGET}),
        ("CALL", {TARGET}),
        ("INDIRECT_JUMP", {NEXT, TARGET, HANDLER}),
        ("INDIRECT_CALL", {NEXT, TARGET, HANDLER}),
        ("RETURN", {NEXT, TARGET, HANDLER}),
    ],
)
def test_an_interrupt_is_where_the_code_does_not_lead(
    model: ctypes.CDLL, transfer: str, ways: set[int]
) -> None:
    found = {to: into(model, to, transfer) for to in (NEXT, TARGET, HANDLER)}
    assert found == {to: 0 if to in ways else INTERRUPT for to in found}


def test_a_block_that_is_left_within_was_interrupted_unless_it_goes_on(
    model: ctypes.CDLL,
) -> None:
    assert into(model, HANDLER, ended=False) == INTERRUPT
    assert into(model, HANDLER, "RETURN", ended=False) == INTERRUPT
    assert into(model, WITHIN, ended=False) == 0
    assert into(model, 0x1000, ended=False) == 0


def test_a_rep_goes_on_with_itself(model: ctypes.CDLL) -> None:
    assert into(model, REPEATED, repeats=True) == 0
    assert into(model, HANDLER, repeats=True) == INTERRUPT
    assert into(model, REPEATED) == INTERRUPT


def test_user_code_enters_by_a_system_call_or_an_interrupt(model: ctypes.CDLL) -> None:
    assert into(model, HANDLER, crossing=CALL, from_kernel=False) == SYSTEM_CALL
    assert into(model, HANDLER, from_kernel=False) == INTERRUPT
    assert into(model, HANDLER, "RETURN", from_kernel=False) == INTERRUPT
    # Interrupted before it.
    assert into(model, HANDLER, crossing=CALL, from_kernel=False, ended=False) == INTERRUPT
    assert into(model, TARGET, "JUMP", from_kernel=False, to_kernel=False) == 0


@pytest.mark.parametrize("crossing", [CALL_RETURN, EVENT_RETURN])
def test_a_return_from_the_kernel_leads_to_user_code(model: ctypes.CDLL, crossing: int) -> None:
    assert into(model, 0x400000, crossing=crossing, to_kernel=False) == 0


def test_code_that_is_returned_to_may_raise_an_exception(model: ctypes.CDLL) -> None:
    # SYSRET leads nowhere else; IRET and ERET also return to the kernel.
    assert into(model, HANDLER, crossing=CALL_RETURN) == INTERRUPT
    assert into(model, HANDLER, crossing=EVENT_RETURN) == 0
    assert into(model, HANDLER, crossing=EVENT_RETURN, handler=HANDLER) == INTERRUPT


def test_the_first_block_was_not_entered(model: ctypes.CDLL) -> None:
    assert model.run_first_crossing(ctypes.byref(COSTS)) == 0
