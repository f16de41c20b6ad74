/*
 * threads: scheduling of an application's background threads, 1 and 4 at a time: they are created,
 * set their priority to background, yield, and are joined.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../case.h"

#define MOST 4
/* Android's nice value for background threads. */
#define BACKGROUND 10
/* Yields in the life of an application's thread. */
#define YIELDS 4

const char suite_name[] = "threads";

struct worker {
	pthread_t thread;
	bool (*call)(unsigned long step);
	unsigned long warm;
	unsigned long share;
	unsigned long done;
	bool sound;
};

static struct worker workers[MOST];
static struct gate gate;

static long raw_priority(void)
{
	/* The raw system call returns 20 minus the nice value, and so never a negative number. */
	return 20 - syscall(SYS_getpriority, PRIO_PROCESS, 0);
}

static bool set_nice(int nice)
{
	return syscall(SYS_setpriority, PRIO_PROCESS, 0, nice) == 0 || fault("setpriority");
}

static bool set_policy(int policy)
{
	const struct sched_param none = {.sched_priority = 0};

	return syscall(SYS_sched_setscheduler, 0, policy, &none) == 0 || fault("sched_setscheduler");
}

/* One step into the background or back. */
#define WAY 5

static bool change(unsigned long step)
{
	switch (step % WAY) {
	case 0:
		return set_nice(damaged() ? 0 : BACKGROUND) &&
		       (raw_priority() == BACKGROUND || fault("nice value"));
	case 1:
		return set_policy(SCHED_BATCH) &&
		       (syscall(SYS_sched_getscheduler, 0) == SCHED_BATCH || fault("policy batch"));
	case 2:
		return set_policy(SCHED_IDLE) &&
		       (syscall(SYS_sched_getscheduler, 0) == SCHED_IDLE || fault("policy idle"));
	case 3:
		return set_policy(SCHED_OTHER) &&
		       (syscall(SYS_sched_getscheduler, 0) == SCHED_OTHER || fault("policy other"));
	default:
		return set_nice(0) && (raw_priority() == 0 || fault("nice value back"));
	}
}

static void *short_life(void *argument)
{
	struct worker *me = argument;

	me->done++;
	return damaged() ? NULL : me;
}

static void *background_life(void *argument)
{
	struct worker *me = argument;

	me->sound = set_nice(BACKGROUND) && raw_priority() == BACKGROUND;
	for (int i = 0; i < YIELDS; i++)
		me->sound = sched_yield() == 0 && me->sound;
	me->done++;
	return me->sound && !damaged() ? me : NULL;
}

static bool generations(unsigned concurrency, unsigned long rounds, void *(*life)(void *))
{
	for (unsigned long round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < concurrency; i++) {
			workers[i].done = 0;
			if (pthread_create(&workers[i].thread, NULL, life, &workers[i]) != 0)
				return fault("create a thread");
		}
		for (unsigned i = 0; i < concurrency; i++) {
			void *result;
			if (pthread_join(workers[i].thread, &result) != 0)
				return fault("join a thread");
			if (result != &workers[i] || workers[i].done != 1)
				return fault("what a thread did");
		}
	}
	return true;
}

/* An operation is the life of a thread. */
static bool measure_lives(const struct suite_case *is, unsigned long operations,
			  void *(*life)(void *))
{
	const unsigned long rounds = (operations + is->concurrency - 1) / is->concurrency;

	operations_done(rounds * is->concurrency);
	if (!generations(is->concurrency, rounds / 10 + 1, life))
		return false;
	measure_begin();
	const bool sound = generations(is->concurrency, rounds, life);
	measure_end();
	return sound;
}

static bool run_create(const struct suite_case *is, unsigned long operations)
{
	return measure_lives(is, operations, short_life);
}

static bool run_life(const struct suite_case *is, unsigned long operations)
{
	return measure_lives(is, operations, background_life);
}

static bool yield(unsigned long step)
{
	(void)step;
	return (sched_yield() == 0 && !damaged()) || fault("sched_yield");
}

static bool call_all(struct worker *me, unsigned long calls)
{
	for (unsigned long i = 0; i < calls; i++, me->done++)
		if (!me->call(i))
			return false;
	return true;
}

static void *calling_life(void *argument)
{
	struct worker *me = argument;

	me->sound = call_all(me, me->warm);
	gate_begin(&gate);
	me->sound = me->sound && call_all(me, me->share);
	gate_end(&gate);
	return NULL;
}

/* An operation is one call, by any of the threads. */
static bool measure_calls(const struct suite_case *is, unsigned long operations,
			  bool (*call)(unsigned long step))
{
	bool sound = true;

	gate_init(&gate, is->concurrency, false);
	/* Whole rounds into the background and back, for every thread. */
	const unsigned long share = (operations / is->concurrency / WAY + 1) * WAY;
	const unsigned long warm = (share / 10 / WAY + 1) * WAY;
	operations_done(share * is->concurrency);
	for (unsigned i = 0; i < is->concurrency; i++) {
		workers[i] = (struct worker){.call = call, .warm = warm, .share = share};
		if (pthread_create(&workers[i].thread, NULL, calling_life, &workers[i]) != 0)
			return fault("create a thread");
	}
	measure_gate(&gate);
	for (unsigned i = 0; i < is->concurrency; i++) {
		pthread_join(workers[i].thread, NULL);
		sound = sound && workers[i].sound && workers[i].done == warm + share;
	}
	return sound || fault("what the threads did");
}

static bool run_priority(const struct suite_case *is, unsigned long operations)
{
	/* Leaving the background requires a privilege that a host's user may not have. */
	if (!set_nice(1))
		return false;
	if (syscall(SYS_setpriority, PRIO_PROCESS, 0, 0) != 0)
		unsupported("CAP_SYS_NICE");
	return measure_calls(is, operations, change);
}

static bool run_yield(const struct suite_case *is, unsigned long operations)
{
	return measure_calls(is, operations, yield);
}

const struct suite_case suite_cases[] = {
	{"create-1", 600, 0, 1, run_create},    {"create-4", 600, 0, 4, run_create},
	{"priority-1", 8000, 0, 1, run_priority}, {"priority-4", 8000, 0, 4, run_priority},
	{"yield-1", 20000, 0, 1, run_yield},    {"yield-4", 20000, 0, 4, run_yield},
	{"life-1", 500, 0, 1, run_life},        {"life-4", 500, 0, 4, run_life},
};
const size_t suite_case_count = sizeof(suite_cases) / sizeof(suite_cases[0]);
