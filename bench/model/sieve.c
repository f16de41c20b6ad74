/* The sieve of Eratosthenes over bytes. */
#include "work.h"

enum { LIMIT = 600000 };
static unsigned char composite[LIMIT];

uint64_t work(uint64_t seed)
{
	uint64_t state = seed, sum = 0;
	const size_t limit = LIMIT - draw(&state) % 10000;

	memset(composite, 0, limit);
	for (size_t i = 2; i < limit; i++) {
		if (composite[i])
			continue;
		sum += i;
		for (size_t multiple = i * i; multiple < limit; multiple += i)
			composite[multiple] = 1;
	}
	return sum;
}
