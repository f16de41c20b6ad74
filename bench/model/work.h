/* What each program of bench/model.py defines, and what they share. */
#ifndef MEPOF_MODEL_WORK_H
#define MEPOF_MODEL_WORK_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Some million instructions over data drawn from the seed, so that another seed is another input
 * of the same kind. Gives a sum that depends on all of it.
 */
uint64_t work(uint64_t seed);

/* Knuth's MMIX generator: the high bits are the good ones. */
static inline uint32_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

#endif
