/* Processes and threads of different policies and priorities that share the processors. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "general.h"

#define RING 6
#define LAPS 25

/* A token goes round a ring of processes, each of another policy and priority. */
static bool set_part(unsigned part)
{
	static const int policies[] = {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_OTHER, SCHED_RR, SCHED_FIFO};
	const int policy = policies[part % COUNT(policies)];
	const struct sched_param parameter = {.sched_priority = policy == SCHED_RR || policy == SCHED_FIFO ? 3 : 0};
	struct sched_param read_back;

	if (syscall(SYS_sched_setscheduler, 0, policy, &parameter) != 0)
		return lacks("CAP_SYS_NICE");
	TRY(syscall(SYS_sched_getscheduler, 0) == policy &&
		    syscall(SYS_sched_getparam, 0, &read_back) == 0 &&
		    read_back.sched_priority == parameter.sched_priority,
	    "a policy");
	if (policy != SCHED_RR && policy != SCHED_FIFO)
		TRY(setpriority(PRIO_PROCESS, 0, (int)part * 3) == 0 &&
			    getpriority(PRIO_PROCESS, 0) == (int)part * 3,
		    "a priority");
	return true;
}

static bool ring(void)
{
	int links[RING][2];
	pid_t members[RING];
	unsigned token = 0;

	for (unsigned i = 0; i < RING; i++)
		TRY(pipe(links[i]) == 0, "pipe");
	for (unsigned i = 0; i < RING; i++) {
		members[i] = fork_child();
		if (members[i] != 0)
			continue;
		bool sound = set_part(i);
		for (unsigned lap = 0; sound && lap < LAPS; lap++) {
			sound = read(links[i][0], &token, sizeof(token)) == sizeof(token);
			token += i + 1;
			/* Some work, so that their time slices differ. */
			for (volatile unsigned n = 0; n < 300 * i; n++)
				;
			if (i + 1 < RING)
				sound = sound && write(links[i + 1][1], &token, sizeof(token)) == sizeof(token);
			else
				sound = sound && write(links[0][1], &token, sizeof(token)) == sizeof(token);
		}
		leave(sound);
	}
	TRY(write(links[0][1], &token, sizeof(token)) == sizeof(token), "begin");
	for (unsigned i = 0; i < RING; i++)
		TRY(members[i] > 0 && reap(members[i]), "a member of a ring");
	TRY(read(links[0][0], &token, sizeof(token)) == sizeof(token) && token == LAPS * 21 + (unsigned)damaged(), "a token");
	for (unsigned i = 0; i < RING; i++)
		TRY(close(links[i][0]) == 0 && close(links[i][1]) == 0, "close");
	return true;
}

/* More that compute than there are processors, so that they are preempted. */
static bool preempted(void)
{
	pid_t children[4];
	uint32_t *sums = shared_memory(4 * sizeof(*sums));

	for (unsigned i = 0; i < 4; i++) {
		children[i] = fork_child();
		if (children[i] != 0)
			continue;
		bool sound = setpriority(PRIO_PROCESS, 0, (int)(i * 5)) == 0;
		uint32_t sum = 0;
		for (unsigned n = 0; n < 400000; n++)
			sum = sum * 31 + n + i;
		sums[i] = sum | 1;
		for (unsigned n = 0; n < 30; n++)
			sched_yield();
		leave(sound);
	}
	for (unsigned i = 0; i < 4; i++)
		TRY(children[i] > 0 && reap(children[i]) && sums[i] != 0, "a process that computes");
	return true;
}

/* Threads that hand over by yielding and by sleeping. */
static _Atomic unsigned handed;

static void *hand_over(void *argument)
{
	const unsigned me = (unsigned)(uintptr_t)argument;

	for (unsigned lap = 0; lap < 40; lap++) {
		for (unsigned tries = 0; atomic_load(&handed) % 3 != me && tries < 5; tries++)
			sched_yield();
		const struct timespec moment = {.tv_nsec = 5000};
		while (atomic_load(&handed) % 3 != me)
			nanosleep(&moment, NULL);
		atomic_fetch_add(&handed, 1);
	}
	return argument;
}

static bool handing(void)
{
	pthread_t crew[3];

	atomic_store(&handed, 0);
	for (uintptr_t i = 0; i < 3; i++)
		TRY(pthread_create(&crew[i], NULL, hand_over, (void *)i) == 0, "create a thread");
	for (int i = 0; i < 3; i++)
		TRY(pthread_join(crew[i], NULL) == 0, "join");
	return atomic_load(&handed) == 120 || fault("what threads handed over");
}

/* Processors, ranges of priorities, and the newer calls for attributes. */
static bool queried(void)
{
	struct {
		uint32_t size;
		uint32_t policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime;
		uint64_t deadline;
		uint64_t period;
		uint64_t more[2];
	} attributes = {0};
	cpu_set_t set;
	struct timespec slice;
	unsigned processor;

	TRY(syscall(SYS_sched_getaffinity, 0, sizeof(set), &set) > 0 && CPU_COUNT(&set) > 0, "sched_getaffinity");
	TRY(syscall(SYS_sched_setaffinity, 0, sizeof(set), &set) == 0, "sched_setaffinity");
	TRY(syscall(SYS_getcpu, &processor, NULL, NULL) == 0 && CPU_ISSET(processor, &set), "getcpu");
	TRY(sched_get_priority_max(SCHED_FIFO) > sched_get_priority_min(SCHED_FIFO), "priorities");
	TRY(sched_rr_get_interval(0, &slice) == 0, "sched_rr_get_interval");
	if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0)
		return lacks("sched_getattr");
	attributes.nice = 0;
	TRY(syscall(SYS_sched_setattr, 0, &attributes, 0) == 0, "sched_setattr");
	return true;
}

bool scheduling(unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++)
		if (!ring() || !preempted() || !handing() || !queried())
			return false;
	return true;
}
