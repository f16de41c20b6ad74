/* The sieve of Eratosthenes over bytes. */
#include "work.h"

enum { LIMIT = 600000 };
static unsigned char composite[LIMIT];

void prepare(void) {}

uint64_t work(void)
{
	uint64_t sum = 0;

	memset(composite, 0, sizeof(composite));
	for (size_t i = 2; i < LIMIT; i++) {
		if (composite[i])
			continue;
		sum += i;
		for (size_t multiple = i * i; multiple < LIMIT; multiple += i)
			composite[multiple] = 1;
	}
	return sum;
}
