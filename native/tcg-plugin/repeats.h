/* What is counted of string instructions with a repeat prefix (REP), beside the instructions. */
#ifndef MEPOF_REPEATS_H
#define MEPOF_REPEATS_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

/* In halves, because CMPS makes two accesses in an iteration. */
struct repeats {
	uint64_t begun;
	uint64_t half_iterations;
	uint64_t half_bytes;
};

static inline void repeats_print(FILE *file, const char *side, const struct repeats *repeats)
{
	fprintf(file,
		",\"%s_repeats\":{\"instructions\":%" PRIu64 ",\"iterations\":%" PRIu64
		",\"bytes\":%" PRIu64 "}",
		side, repeats->begun, repeats->half_iterations / 2, repeats->half_bytes / 2);
}

#endif
