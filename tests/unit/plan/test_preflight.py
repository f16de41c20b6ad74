"""What is refused before anything is made."""

from __future__ import annotations

import pytest

from mepof.errors import InputError
from mepof.executor.programs import plan_of
from mepof.g4 import Source

LONG = "./" + "a" * 300


@pytest.mark.parametrize(
    "program",
    [
        f"opt {LONG} pgo rand kbench.",
        f"opt {LONG * 99} pgo rand kbench.",
        f"set base {LONG}.afdo.\nopt debian:linux-source-6.12 autofdo rand kbench.",
        f"eval {LONG * 2};/dev/null.",
    ],
)
def test_a_name_that_is_too_long_is_the_users_error(program: str) -> None:
    with pytest.raises(InputError, match="cannot be read: File name too long") as caught:
        plan_of(Source("p.g4", program))
    assert len(caught.value.message) < 1000
