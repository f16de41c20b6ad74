"""Overlays that keep what is rarely needed out of a function that is called all the time."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from writers.mini_kernel import SUFFIX

from mepof.kernel import overlay
from mepof.kernel.overlay import compose


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree that has none of these functions."""
    for name in ("entry", "rcu", "sched"):
        (tmp_path / "tree/kernel" / name).mkdir(parents=True)
    return tmp_path / "tree"


SCHEDULER = """\
#include "scheduler.h"

static void __sched notrace preempt_schedule_common(void)
{
\tscheduled();
}

int __cond_resched(void)
{
\tif (!needed())
\t\treturn 0;
\tpreempt_schedule_common();
\treturn 1;
}

int line = __LINE__;
"""
SCHEDULER_H = """\
#define __sched __attribute__((__section__(".sched.text")))
#define notrace __attribute__((__no_instrument_function__))
void scheduled(void);
int needed(void);
"""


def test_what_asks_whether_to_schedule_is_apart_from_the_scheduler(
    tree: Path, tmp_path: Path
) -> None:
    laid_over = overlay.load("resched-apart")
    assert not laid_over.is_for(tree)
    source = tree / "kernel/sched/core.c"
    source.write_text(SCHEDULER)
    (source.parent / "scheduler.h").write_text(SCHEDULER_H)
    assert laid_over.is_for(tree)
    assert "preempt_schedule_common" not in called_by("__cond_resched", source)
    compose(tree, (laid_over,), tmp_path / "view", None)
    edited_source = tmp_path / "view/kernel/sched/core.c"
    assert "preempt_schedule_common" in called_by("__cond_resched", edited_source)
    assert line_of(edited_source) == line_of(source)


RCU = """\
struct task_struct { int depth, special; };
#include "tree_plugin.h"

int line = __LINE__;
"""
RCU_PLUGIN = """\
#ifdef CONFIG_PREEMPT_RCU

static void rcu_read_unlock_special(struct task_struct *t);
void report(struct task_struct *t);

void __rcu_read_unlock(struct task_struct *t)
{
\tif (--t->depth == 0 && t->special)
\t\trcu_read_unlock_special(t);
}

static void rcu_read_unlock_special(struct task_struct *t)
{
\treport(t);
}

#endif
"""


def test_what_ends_a_preempted_read_is_apart_from_the_check_for_it(
    tree: Path, tmp_path: Path
) -> None:
    laid_over = overlay.load("rcu-apart")
    assert not laid_over.is_for(tree)
    source = tree / "kernel/rcu/tree.c"
    source.write_text(RCU)
    (source.parent / "tree_plugin.h").write_text(RCU_PLUGIN)
    assert laid_over.is_for(tree)
    preempted = "-DCONFIG_PREEMPT_RCU=1"
    assert called_by("__rcu_read_unlock", source, preempted) == {"report"}
    compose(tree, (laid_over,), tmp_path / "view", None)
    edited_source = tmp_path / "view/kernel/rcu/tree.c"
    assert called_by("__rcu_read_unlock", edited_source, preempted) == {"rcu_read_unlock_special"}
    for flags in ([preempted], []):
        assert line_of(edited_source, *flags) == line_of(source, *flags)


MIGRATION = """\
struct task_struct { int pinned, moved; };
struct affinity_context { int flags; };
void move(struct task_struct *p, int flags);
int __set_cpus_allowed_ptr(struct task_struct *p, struct affinity_context *ctx);

void migrate_enable(struct task_struct *p)
{
\tstruct affinity_context ac = { 1 };

\tif (p->moved)
\t\t__set_cpus_allowed_ptr(p, &ac);
\tp->pinned = 0;
}

int __set_cpus_allowed_ptr(struct task_struct *p, struct affinity_context *ctx)
{
\tmove(p, ctx->flags);
\treturn 0;
}

int line = __LINE__;
"""


def test_a_move_to_another_processor_is_apart_from_the_check_in_real_time_kernels(
    tree: Path, tmp_path: Path
) -> None:
    laid_over = overlay.load("migration-apart")
    source = tree / "kernel/sched/core.c"
    # The declaration would contradict a function of another kind, as older releases have.
    source.write_text(MIGRATION.replace("\nint __set", "\nstatic int __set"))
    assert not laid_over.is_for(tree)
    source.write_text(MIGRATION)
    assert laid_over.is_for(tree)
    compose(tree, (laid_over,), tmp_path / "view", None)
    edited_source = tmp_path / "view/kernel/sched/core.c"
    real_time = ["-DCONFIG_PREEMPT_RT=1", "-DCONFIG_SMP=1"]
    assert called_by("migrate_enable", source, *real_time) == {"move"}
    assert called_by("migrate_enable", edited_source, *real_time) == {"__set_cpus_allowed_ptr"}
    assert called_by("migrate_enable", edited_source, real_time[1]) == {"move"}
    assert line_of(edited_source, *real_time) == line_of(source, *real_time)


ENTRY = """\
struct pt_regs;
unsigned long wanted(void);
long traced(struct pt_regs *regs, long syscall);
void signalled(struct pt_regs *regs);

static long syscall_trace_enter(struct pt_regs *regs, long syscall,
\t\t\t\tunsigned long work)
{
\treturn traced(regs, syscall);
}

long syscall_enter_from_user_mode(struct pt_regs *regs, long syscall)
{
\tunsigned long work = wanted();

\treturn work ? syscall_trace_enter(regs, syscall, work) : syscall;
}

static unsigned long exit_to_user_mode_loop(struct pt_regs *regs,
\t\t\t\t\t    unsigned long ti_work)
{
\tsignalled(regs);
\treturn ti_work;
}

unsigned long syscall_exit_to_user_mode(struct pt_regs *regs)
{
\tunsigned long work = wanted();

\treturn work ? exit_to_user_mode_loop(regs, work) : work;
}

int line = __LINE__;
"""


def test_what_tracers_and_signals_need_is_apart_from_the_checks_of_each_system_call(
    tree: Path, tmp_path: Path
) -> None:
    laid_over = overlay.load("entry-apart")
    source = tree / "kernel/entry/common.c"
    # As from Linux 6.8 on: these functions are apart, and not static.
    source.write_text(ENTRY.replace("static long", "long"))
    assert not laid_over.is_for(tree)
    source.write_text(ENTRY)
    assert laid_over.is_for(tree)
    compose(tree, (laid_over,), tmp_path / "view", None)
    edited_source = tmp_path / "view/kernel/entry/common.c"
    enter, leave = "syscall_enter_from_user_mode", "syscall_exit_to_user_mode"
    assert called_by(enter, source) == {"wanted", "traced"}
    assert called_by(enter, edited_source) == {"wanted", "syscall_trace_enter"}
    assert called_by(leave, source) == {"wanted", "signalled"}
    assert called_by(leave, edited_source) == {"wanted", "exit_to_user_mode_loop"}
    assert line_of(edited_source) == line_of(source)


def called_by(function: str, source: Path, *flags: str) -> set[str]:
    """What a function calls."""
    body = compiled(source, *flags).partition(f"{function}:")[2].partition(".Lfunc_end")[0]
    return set(re.findall(r"^\tbl?\t([a-z_]\w*)$", body, re.MULTILINE))


def line_of(source: Path, *flags: str) -> str:
    """The line of the file at which a marked one is for the compiler: profiles name lines."""
    (number,) = re.findall(r"^line:\n\t\.word\t(\d+) ", compiled(source, *flags), re.MULTILINE)
    return str(number)


def compiled(source: Path, *flags: str) -> str:
    command = [f"clang{SUFFIX}", "--target=aarch64-linux-gnu", "-O2", "-Wall", "-Werror", "-S"]
    command += [*flags, "-o", "-", str(source)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
