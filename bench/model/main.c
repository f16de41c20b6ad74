/*
 * Runs a program's work. `time N` gives the least CPU time of each seed, in nanoseconds, over N
 * turns through all of them; `model` two intervals between marks, of the first seed, and of it and
 * all others, whose difference is the others on a warm core; `train N` runs N seeds that are none
 * of these. Between two rounds of a seed are those of all others, so that no predictor knows its
 * data by heart.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "marks.h"
#include "work.h"

/* The first is there to warm up. */
enum { SEEDS = 3, OTHER_SEEDS = 100 };

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t timed(unsigned long turns)
{
	uint64_t least[SEEDS], sum = 0;

	memset(least, 0xff, sizeof(least));
	for (unsigned long turn = 0; turn < turns; turn++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			const uint64_t begin = now_ns();
			sum += work(seed);
			const uint64_t elapsed = now_ns() - begin;
			least[seed] = elapsed < least[seed] ? elapsed : least[seed];
		}
	for (uint64_t seed = 1; seed < SEEDS; seed++)
		printf("%" PRIu64 " ", least[seed]);
	return sum;
}

static uint64_t modelled(void)
{
	uint64_t sum = work(0);

	for (uint64_t seeds = 1; seeds <= SEEDS; seeds += SEEDS - 1) {
		mepof_mark_start();
		for (uint64_t seed = 0; seed < seeds; seed++)
			sum += work(seed);
		mepof_mark_stop();
	}
	return sum;
}

static uint64_t trained(unsigned long count)
{
	uint64_t sum = 0;

	for (unsigned long i = 0; i < count; i++)
		sum += work(OTHER_SEEDS + i);
	return sum;
}

int main(int argc, char **argv)
{
	const unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;

	if (argc < 2)
		return 2;
	printf("%" PRIu64 "\n", strcmp(argv[1], "model") == 0   ? modelled()
				: strcmp(argv[1], "train") == 0 ? trained(count)
								: timed(count));
	return 0;
}
