/*
 * Runs a program's work: `time N` gives the least CPU time of N rounds, `model` two intervals
 * between marks, of one round and of three, whose difference is two rounds of a warm core.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "../../native/kbench/marks.h"
#include "work.h"

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t timed(unsigned long rounds, uint64_t *sum)
{
	uint64_t least = UINT64_MAX;

	*sum = work();
	for (unsigned long i = 0; i < rounds; i++) {
		const uint64_t begin = now_ns();
		*sum += work();
		const uint64_t elapsed = now_ns() - begin;
		least = elapsed < least ? elapsed : least;
	}
	return least;
}

static uint64_t modelled(void)
{
	uint64_t sum = work();

	for (int rounds = 1; rounds <= 3; rounds += 2) {
		mepof_mark_start();
		for (int i = 0; i < rounds; i++)
			sum += work();
		mepof_mark_stop();
	}
	return sum;
}

int main(int argc, char **argv)
{
	uint64_t sum, least = 0;

	if (argc < 2)
		return 2;
	prepare();
	if (strcmp(argv[1], "model") == 0)
		sum = modelled();
	else
		least = timed(argc > 2 ? strtoul(argv[2], NULL, 10) : 1, &sum);
	printf("%" PRIu64 " %" PRIu64 "\n", least, sum);
	return 0;
}
