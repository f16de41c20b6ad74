"""The search for files that must not be instrumented, with kernels that fail as the test says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mepof.errors import WorkError
from mepof.kernel.bootable import MAX_TRIALS, Trials, not_to_instrument
from mepof.kernel.safeguard import EVERYTHING, OptOut

OBJECTS = {
    f"{directory}/{name}.o": [f"{name}_init", f"{name}_read"]
    for directory in ("arch/x86", "fs", "kernel", "mm")
    for name in (f"{directory[-1]}{number}" for number in range(64))
}
HANG = "the guest did not come up for 120 s\n  | [    0.1] Freeing memory"


class Kernel:
    """A kernel that does not boot if some files are instrumented.

    Args:
        says: the failure, given the first of them.
    """

    def __init__(self, *bad: str, says: Callable[[str], str] = lambda file: HANG) -> None:
        self.bad = bad
        self.says = says
        self.booted: list[OptOut] = []
        self.notes: list[str] = []

    def boot(self, opt_out: OptOut) -> WorkError | None:
        self.booted.append(opt_out)
        patterns = [name.removesuffix("%") for name in opt_out.files if name.endswith("%")]
        for file in self.bad:
            if file not in opt_out.files and not any(file.startswith(p) for p in patterns):
                return WorkError(self.says(file))
        return None

    def search(self, file: Path, earlier: tuple[str, ...] = ()) -> tuple[str, ...]:
        self.trials = Trials(file, self.boot, self.notes.append)
        failure = self.trials(OptOut())
        assert failure is not None
        return not_to_instrument(failure, self.trials, OBJECTS, earlier, self.notes.append)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "trials.json"


def test_a_file_that_nothing_names_is_found_by_bisection(kept: Path) -> None:
    kernel = Kernel("mm/m33.o")
    assert kernel.search(kept) == ("mm/m33.o",)
    # With everything, without arch/, with nothing; 256 files.
    assert kernel.booted[1:3] == [OptOut(("arch/%",)), EVERYTHING]
    assert len(kernel.booted) <= 3 + 8 + 1
    assert "searching among 256 files" in kernel.notes


def test_the_files_of_the_architecture_are_searched_first(kept: Path) -> None:
    kernel = Kernel("arch/x86/67.o".replace("67", "63"))
    assert kernel.search(kept) == ("arch/x86/63.o",)
    assert EVERYTHING not in kernel.booted
    assert len(kernel.booted) <= 2 + 6 + 1
    assert "searching among 64 files" in kernel.notes


@pytest.mark.parametrize(
    "says",
    [
        "the kernel went down: Oops\n  | RIP: 0010:m33_init+0x1f/0x80",
        "{}\n  | [    0.2] calling  s9_init+0x0/0x9 @ 1\n"
        "  | [    0.2] initcall s9_init+0x0/0x9 returned 0 after 0 usecs\n"
        "  | [    0.2] calling  m33_init+0x0/0x9 @ 1",
    ],
)
def test_a_function_that_the_console_names_needs_no_search(kept: Path, says: str) -> None:
    kernel = Kernel("mm/m33.o", says=lambda file: says)
    assert kernel.search(kept) == ("mm/m33.o",)
    assert kernel.booted == [OptOut(), OptOut(("mm/m33.o",))]


def test_of_several_suspects_only_the_culprits_are_left_out(kept: Path) -> None:
    named = "\n  | ".join(f"RIP: 0010:m{number}_init+0x1f/0x80" for number in range(8))
    kernel = Kernel("mm/m3.o", says=lambda file: f"the kernel went down\n  | {named}")
    assert kernel.search(kept) == ("mm/m3.o",)
    assert len(kernel.booted) <= 6


def test_a_function_that_is_named_without_guilt_does_not_mislead(kept: Path) -> None:
    kernel = Kernel("mm/m33.o", says=lambda file: "Oops\n  | RIP: 0010:s1_init+0x1f/0x80")
    assert kernel.search(kept) == ("mm/m33.o",)


def test_what_the_earlier_round_did_not_instrument_is_tried_first(kept: Path) -> None:
    kernel = Kernel("mm/m33.o", "fs/s1.o")
    assert kernel.search(kept, ("fs/s1.o", "mm/m33.o")) == ("fs/s1.o", "mm/m33.o")
    assert len(kernel.booted) == 2


def test_an_earlier_round_that_is_not_enough_does_not_mislead(kept: Path) -> None:
    assert set(Kernel("mm/m33.o", "fs/s1.o").search(kept, ("fs/s1.o",))) == {"mm/m33.o", "fs/s1.o"}


def test_a_kernel_that_does_not_boot_without_instrumentation_either_is_reported(
    kept: Path,
) -> None:
    kernel = Kernel("vmlinux.o")
    kernel.boot = lambda opt_out: WorkError(HANG)  # type: ignore[method-assign]
    with pytest.raises(WorkError, match="without instrumentation either: the guest did not come"):
        kernel.search(kept)


def test_too_many_files_end_the_search(kept: Path) -> None:
    assert len(Kernel(*(f"mm/m{n}.o" for n in range(4))).search(kept)) == 4
    kernel = Kernel(*(f"mm/m{n}.o" for n in range(5)))
    with pytest.raises(WorkError, match="more than 4 files must not be instrumented"):
        kernel.search(kept.with_name("others.json"))


def test_too_many_trials_end_the_search(kept: Path) -> None:
    trials = Trials(kept, Kernel("mm/m1.o").boot, lambda text: None)
    for number in range(MAX_TRIALS):
        trials(OptOut((f"fs/s{number}.o",)))
    trials(OptOut(("fs/s0.o",)))
    with pytest.raises(WorkError, match=f"{MAX_TRIALS} kernels did not show which files") as caught:
        trials(OptOut(("mm/m1.o",)))
    assert "set exclude" in str(caught.value)


def test_a_search_that_was_interrupted_continues(kept: Path) -> None:
    whole = Kernel("mm/m33.o")
    found = whole.search(kept.with_name("whole.json"))
    for killed_at in range(len(whole.booted)):
        kernel = Kernel("mm/m33.o")

        def dies(opt_out: OptOut, kernel: Kernel = kernel, at: int = killed_at) -> WorkError | None:
            if len(kernel.booted) == at:
                raise KeyboardInterrupt
            return Kernel.boot(kernel, opt_out)

        kernel.boot = dies  # type: ignore[method-assign]
        kept.unlink(missing_ok=True)
        with pytest.raises(KeyboardInterrupt):
            kernel.search(kept)
        again = Kernel("mm/m33.o")
        assert again.search(kept) == found
        assert len(again.booted) == len(whole.booted) - killed_at
        assert len(again.trials) == len(whole.booted)


@given(st.frozensets(st.sampled_from(sorted(OBJECTS)), min_size=1, max_size=4))
def test_exactly_the_culprits_are_found(
    tmp_path_factory: pytest.TempPathFactory, bad: frozenset[str]
) -> None:
    kernel = Kernel(*sorted(bad))
    found = kernel.search(tmp_path_factory.mktemp("search") / "trials.json")
    assert frozenset(found) == bad
    assert len(kernel.booted) <= MAX_TRIALS
    assert kernel.boot(OptOut(found)) is None
