"""What Clang does to variables that it zeroes (INIT_STACK_ALL_ZERO) before an early exit.

The kernel's ``locks_remove_posix`` zeroes 192 bytes behind its early exit, in a function that it
inlines. Under a profile in which only the exit ran, that call is cold and not inlined; so Clang no
longer sees that the function zeroes the variable, and its own zeroing stays where the hot path runs
it. NoPGSO inlines cold calls as without a profile. ``move-auto-init.ll`` is why it stays.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mepof.kernel.options import options
from mepof.process import run
from mepof.toolchain import clang
from mepof.toolchain.named import select

_SOURCE = """
struct lock { long a[24]; };
struct context { void *first; };
struct file { struct context *context; };
void wait(long *queue);
void set(struct lock *lock);
void prepare(struct lock *lock)
{
	__builtin_memset(lock, 0, sizeof(*lock));
	lock->a[5] = lock->a[6] = (long)&lock->a[5];
	lock->a[7] = lock->a[8] = (long)&lock->a[7];
	wait(lock->a + 12);
	wait(lock->a + 13);
	wait(lock->a + 14);
	wait(lock->a + 15);
	wait(lock->a + 16);
}
__attribute__((noinline)) void release(struct file *file)
{
	ATTRIBUTE struct lock lock;
	struct context *context = file->context;
	if (!context || context->first == context)
		return;
	prepare(&lock);
	set(&lock);
}
"""
_TRAINING = """
void wait(long *queue) { }
void set(struct lock *lock) { }
int main(void)
{
	struct context context = {&context};
	struct file file = {&context};
	for (int i = 0; i < 100000; i++)
		release(&file);
}
"""
_FLAGS = ("-O2", "-w", "-ftrivial-auto-var-init=zero", "-mno-sse")


def exits_before_zeroing(directory: Path, attribute: str, profiled: bool, *flags: str) -> int:
    """How many conditional jumps are before the first memset in ``release``; -1 without any."""
    tools = select("clang")
    compiler = [tools.tool("compiler"), *_FLAGS, f"-DATTRIBUTE={attribute}"]
    source, trainee = directory / "a.c", directory / "training.c"
    source.write_text(_SOURCE)
    trainee.write_text(_SOURCE + _TRAINING)
    if profiled:
        raw, profile = directory / "a.profraw", directory / "a.profdata"
        run([*compiler, "-fprofile-generate", "-o", directory / "a", trainee])
        run([directory / "a"], env={"LLVM_PROFILE_FILE": str(raw)})
        run([tools.tool("profile-merger"), "merge", "-o", profile, raw])
        compiler.append(f"-fprofile-use={profile}")
    run([*compiler, *flags, "-S", "-o", directory / "a.s", source])
    code = (directory / "a.s").read_text().partition("\nrelease:")[2].partition("Lfunc_end")[0]
    before, zeroes, _ = code.partition("memset")
    return len(re.findall(r"\tj(?!mp)\w+\t", before)) if zeroes else -1


@pytest.mark.parametrize(
    ("attribute", "profiled", "flags", "exits"),
    [
        ("", False, (), 2),
        ("", True, (), 1),
        ("", True, options()["NoPGSO"].profiled_cflags, 2),
        ("__attribute__((uninitialized))", True, (), -1),
    ],
    ids=["no profile", "profile", "profile with NoPGSO", "profile and attribute"],
)
def test_a_profile_moves_zeroing_before_an_exit(
    tmp_path: Path, attribute: str, profiled: bool, flags: tuple[str, ...], exits: int
) -> None:
    assert exits_before_zeroing(tmp_path, attribute, profiled, *flags) == exits


def test_a_variable_whose_address_escapes_later_is_zeroed_before_the_exit() -> None:
    """The first block of each function is its entry; the second, its only use."""
    source = Path(__file__).with_name("move-auto-init.ll")
    optimiser = clang.TOOLCHAIN.select(None).program("opt")
    code = run([optimiser, "-S", "-passes=move-auto-init", source]).output
    bodies = re.findall(r"define void @(\w+)\(.*?\n(.*?)\n}", code, re.S)
    moved = {name: body.index("\nsome:") < body.index("memset") for name, body in bodies}
    assert moved == {"load_by_argument": True, "load_by_loaded_pointer": False, "barrier": False}
