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

uint64_t work(uint64_t seed)
{
	uint64_t state = seed, sum = 0;

	/* Some places are threatened by what is beside the board. */
	for (int i = 0; i < 6; i++)
		sum += queens(0, draw(&state) & draw(&state) & 0x1ff, draw(&state) & 1, 0x1ff);
	return sum + hanoi(14, 0, 2) + ackermann(2, 150 + draw(&state) % 16);
}
