/* Queens on a board, towers of Hanoi, Ackermann's function. */
#include "work.h"

static unsigned queens(unsigned columns, unsigned left, unsigned right, unsigned all)
{
	unsigned found = 0, free = all & ~(columns | left | right);

	if (columns == all)
		return 1;
	while (free) {
		const unsigned place = free & -free;
		free ^= place;
		found += queens(columns | place, (left | place) << 1, (right | place) >> 1, all);
	}
	return found;
}

static uint64_t hanoi(int discs, int from, int to)
{
	if (discs == 0)
		return (uint64_t)from;
	return hanoi(discs - 1, from, 3 - from - to) * 3 + hanoi(discs - 1, 3 - from - to, to);
}

static unsigned ackermann(unsigned m, unsigned n)
{
	if (m == 0)
		return n + 1;
	return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

void prepare(void) {}

uint64_t work(void)
{
	return queens(0, 0, 0, 0x1ff) + hanoi(15, 0, 2) + ackermann(2, 180);
}
