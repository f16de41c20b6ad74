"""The search for what must do without the profile, with kernels that fail as the test says."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mepof.errors import WorkError
from mepof.kernel.objtool import Unclean, Warned
from mepof.kernel.safeguard import EVERYTHING, OptOut, smallest_opt_out

OBJECTS = {
    f"{directory}/{name}.o": [f"{name}_{verb}" for verb in ("open", "read", "write", "close")]
    for directory in ("fs", "kernel", "mm", "net")
    for name in (f"{directory}{number}" for number in range(16))
}
# Functions that are static, and so may share a name.
OBJECTS["fs/fs0.o"].append("helper")
OBJECTS["mm/mm0.o"].append("helper")

Use = tuple[str, str]
PANIC = "the kernel went down: Oops\n  | RIP: 0010:{}+0x1f/0x80"


class Kernel:
    """A kernel that fails if the profile is used for all of one of some sets of functions.

    Args:
        bad: sets of (object, function); without a function, the use of any profile for the
            object is meant, even of one that leaves out all its functions.
        says: the failure, given which set it is for.
    """

    def __init__(
        self,
        *bad: Collection[Use],
        says: Callable[[Collection[Use]], str] = lambda each: "the guest did not come up",
    ) -> None:
        self.bad = [frozenset(each) for each in bad]
        self.says = says
        self.tried: list[OptOut] = []
        self.notes: list[str] = []

    def __call__(self, opt_out: OptOut) -> WorkError | None:
        self.tried.append(opt_out)
        for each in self.bad:
            if all(self._used(opt_out, file, function) for file, function in each):
                return WorkError(self.says(each))
        return None

    @staticmethod
    def _used(opt_out: OptOut, file: str, function: str) -> bool:
        if opt_out == EVERYTHING or file in opt_out.files:
            return False
        return function not in opt_out.functions.get(file, ())

    def search(self, *, by_function: bool = True) -> OptOut:
        failure = self(OptOut())
        assert failure is not None
        self.tried.clear()
        found = smallest_opt_out(
            failure, self, lambda: OBJECTS, self.notes.append, by_function=by_function
        )
        # What is returned is what was built last, and it works.
        assert self.tried[-1] == found
        assert self(found) is None
        return found


def test_a_function_is_found_in_the_one_object_that_fails() -> None:
    kernel = Kernel({("mm/mm3.o", "mm3_write")})
    assert kernel.search() == OptOut((), {"mm/mm3.o": ("mm3_write",)})
    assert kernel.tried[0] == EVERYTHING
    # 64 objects, 4 functions.
    assert len(kernel.tried) < 24
    assert kernel.notes[-1] == "these fail with the profile: mm/mm3.o"


def test_a_file_that_fails_whatever_is_left_out_does_without_the_profile() -> None:
    kernel = Kernel({("net/net7.o", "")})
    assert kernel.search() == OptOut(("net/net7.o",), {})


def test_functions_that_fail_only_together_are_spared_as_few_as_will_do() -> None:
    kernel = Kernel({("fs/fs1.o", "fs1_open"), ("fs/fs1.o", "fs1_close")})
    found = kernel.search()
    assert found.files == ()
    assert set(found.functions["fs/fs1.o"]) <= {"fs1_open", "fs1_close"}


def test_several_functions_are_each_found() -> None:
    kernel = Kernel({("fs/fs1.o", "fs1_open")}, {("mm/mm2.o", "")}, {("net/net0.o", "net0_read")})
    assert kernel.search() == OptOut(
        ("mm/mm2.o",), {"fs/fs1.o": ("fs1_open",), "net/net0.o": ("net0_read",)}
    )


def test_a_file_with_many_bad_functions_does_without_the_profile() -> None:
    kernel = Kernel(*({("fs/fs1.o", f"fs1_{v}")} for v in ("open", "read", "write", "close")))
    assert kernel.search() == OptOut((), {"fs/fs1.o": tuple(OBJECTS["fs/fs1.o"])})
    kernel = Kernel(*({("fs/fs0.o", name)} for name in OBJECTS["fs/fs0.o"]))
    assert len(OBJECTS["fs/fs0.o"]) == 5
    assert kernel.search() == OptOut(("fs/fs0.o",), {})


@pytest.mark.parametrize(
    "says",
    [
        "the kernel did not build: make[3]: *** [scripts/Makefile.build:229: mm/mm3.o] Error 255",
        "the kernel did not build: make[3]: *** [/x/scripts/Makefile.build:244: mm/mm3.o] Error 1",
        PANIC.format("mm3_write"),
        PANIC.format("mm3_write.cold"),
        "the kernel went down: Kernel panic - not syncing: no, in mm3_write+0x2f/0x30\n  | x",
        "the kernel went down: Oops\n  | pc : mm3_write+0x1f/0x80\n  | lr : fs1_open+0x4/0x10",
    ],
)
def test_a_failure_that_names_a_function_saves_the_search_among_files(says: str) -> None:
    kernel = Kernel({("mm/mm3.o", "mm3_write")}, says=lambda each: says)
    assert kernel.search() == OptOut((), {"mm/mm3.o": ("mm3_write",)})
    assert kernel.tried[1] == OptOut(("mm/mm3.o",))
    assert len(kernel.tried) < 12


def test_failures_that_name_one_function_after_another_are_followed() -> None:
    kernel = Kernel(
        {("mm/mm3.o", "mm3_write")},
        {("fs/fs1.o", "fs1_read")},
        says=lambda each: PANIC.format(next(iter(each))[1]),
    )
    found = kernel.search()
    assert found == OptOut((), {"mm/mm3.o": ("mm3_write",), "fs/fs1.o": ("fs1_read",)})
    assert OptOut(("mm/mm3.o", "fs/fs1.o")) in kernel.tried


def test_a_failure_that_names_an_innocent_function_does_not_mislead() -> None:
    # The kernel dies where it notices, not where it went wrong.
    kernel = Kernel({("mm/mm3.o", "mm3_write")}, says=lambda each: PANIC.format("fs1_open"))
    assert kernel.search() == OptOut((), {"mm/mm3.o": ("mm3_write",)})


def test_a_function_of_several_objects_makes_them_all_suspects() -> None:
    kernel = Kernel({("mm/mm0.o", "helper")}, says=lambda each: PANIC.format("helper"))
    found = kernel.search()
    assert kernel.tried[1] == OptOut(("fs/fs0.o", "mm/mm0.o"))
    # The other one uses all of its profile again.
    assert found == OptOut((), {"mm/mm0.o": ("helper",)})


def test_of_two_that_fail_together_one_is_enough() -> None:
    kernel = Kernel({("fs/fs1.o", "fs1_open"), ("mm/mm2.o", "mm2_read")})
    found = kernel.search()
    assert found.files == ()
    assert found.functions in ({"fs/fs1.o": ("fs1_open",)}, {"mm/mm2.o": ("mm2_read",)})


@pytest.mark.parametrize("failure", ["it hung", PANIC.format("mm3_write")])
def test_a_kernel_that_fails_only_now_and_then_is_not_handed_out(failure: str) -> None:
    with pytest.raises(WorkError, match="but not on a second try"):
        smallest_opt_out(
            WorkError(failure), lambda opt_out: None, lambda: OBJECTS, lambda text: None
        )


def test_an_object_that_no_profile_reaches_is_not_a_suspect() -> None:
    says = "the kernel did not build: make[2]: *** [Makefile:1: vmlinux.o] Error 1"
    kernel = Kernel({("mm/mm3.o", "mm3_write")}, says=lambda each: says)
    assert kernel.search() == OptOut((), {"mm/mm3.o": ("mm3_write",)})


def test_a_kernel_that_fails_without_the_profile_too_fails_as_it_first_did() -> None:
    failure = WorkError("the first", "see the log")
    notes: list[str] = []
    with pytest.raises(WorkError) as caught:
        smallest_opt_out(
            failure, lambda opt_out: WorkError("without"), lambda: OBJECTS, notes.append
        )
    assert caught.value is failure
    assert notes == ["the kernel fails without the profile, too: the cause is elsewhere"]


def test_too_many_files_end_the_search() -> None:
    kernel = Kernel(*({(f"fs/fs{n}.o", f"fs{n}_read")} for n in range(9)))
    with pytest.raises(WorkError, match="more than 8 files fail with the profile") as caught:
        kernel.search()
    assert caught.value.message.startswith("the guest did not come up (")
    kernel = Kernel(*({(f"fs/fs{n}.o", f"fs{n}_read")} for n in range(8)))
    assert len(kernel.search().functions) == 8


def test_failures_that_name_too_many_functions_are_searched_for() -> None:
    every = "\n".join(PANIC.format(f"fs{n}_read") for n in range(9))
    kernel = Kernel({("mm/mm3.o", "mm3_write")}, says=lambda each: every)
    assert kernel.search() == OptOut((), {"mm/mm3.o": ("mm3_write",)})


class Warning(Kernel):
    """A kernel of which objtool warns where it would fail."""

    file_of = staticmethod(lambda file: file)

    def __call__(self, opt_out: OptOut) -> WorkError | None:
        super().__call__(opt_out)
        warned = {
            Warned(self.file_of(file), f"{function}: unreachable instruction")
            for each in self.bad
            for file, function in each
            if self._used(opt_out, file, function)
        }
        return Unclean(warned) if warned else None


def test_all_that_objtool_names_is_tried_at_once_and_needs_no_search() -> None:
    kernel = Warning(*({(f"fs/fs{n}.o", f"fs{n}_read")} for n in range(12)))
    found = kernel.search()
    assert found == OptOut((), {f"fs/fs{n}.o": (f"fs{n}_read",) for n in range(12)})
    # Without any, with all, without the suspects; two for each of them; the last, and our own.
    assert len(kernel.tried) == 3 + 2 * 12 + 2


def test_objects_that_objtool_saw_as_one_are_distinguished_by_their_functions() -> None:
    kernel = Warning({("mm/mm3.o", "mm3_write")})
    kernel.file_of = staticmethod(lambda file: "vmlinux.o")
    assert kernel.search() == OptOut((), {"mm/mm3.o": ("mm3_write",)})
    assert len(kernel.tried) == 3 + 2 + 2


def test_warnings_that_also_occur_without_the_profile_leave_nothing_out() -> None:
    trials = iter([None, None])
    found = smallest_opt_out(
        Unclean({Warned("mm/mm3.o", "mm3_write: unreachable instruction")}),
        lambda opt_out: next(trials),
        lambda: OBJECTS,
        lambda text: None,
    )
    assert found == OptOut()


def test_where_no_function_can_be_left_out_whole_files_are() -> None:
    kernel = Kernel({("fs/fs1.o", "fs1_open")}, {("mm/mm2.o", "")})
    assert kernel.search(by_function=False) == OptOut(("fs/fs1.o", "mm/mm2.o"), {})
    assert not any(each.functions for each in kernel.tried)
    only = Kernel({("mm/mm3.o", "mm3_read")})
    assert only.search(by_function=False) == OptOut(("mm/mm3.o",), {})


def test_a_file_that_was_only_suspected_keeps_its_profile_where_no_function_can_be_left_out() -> (
    None
):
    kernel = Kernel(
        {("fs/fs0.o", "helper")}, says=lambda each: "RIP: 0010:helper+0x1f/0x80 (a panic)"
    )
    assert kernel.search(by_function=False) == OptOut(("fs/fs0.o",), {})
    assert OptOut(("fs/fs0.o", "mm/mm0.o"), {}) in kernel.tried


uses = st.sampled_from(sorted(OBJECTS)).flatmap(
    lambda file: st.tuples(st.just(file), st.sampled_from(OBJECTS[file]))
)


@given(st.lists(st.frozensets(uses, min_size=1, max_size=2), min_size=1, max_size=4))
def test_whatever_fails_the_rest_works_and_keeps_its_profile(
    bad: list[frozenset[Use]],
) -> None:
    found = Kernel(*bad).search()
    failing = {file for each in bad for file, _ in each}
    assert {*found.files, *found.functions} <= failing
