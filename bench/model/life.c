/* Conway's game of life on a torus of bytes. */
#include "work.h"

enum { SIZE = 96, GENERATIONS = 24 };
static unsigned char given[SIZE][SIZE];

static void prepare(uint64_t state)
{
	for (int y = 0; y < SIZE; y++)
		for (int x = 0; x < SIZE; x++)
			given[y][x] = draw(&state) % 3 == 0;
}

static int neighbours(unsigned char cells[SIZE][SIZE], int x, int y)
{
	int count = 0;

	for (int dy = -1; dy <= 1; dy++)
		for (int dx = -1; dx <= 1; dx++)
			if (dx != 0 || dy != 0)
				count += cells[(y + dy + SIZE) % SIZE][(x + dx + SIZE) % SIZE];
	return count;
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	static unsigned char cells[2][SIZE][SIZE];
	uint64_t sum = 0;

	memcpy(cells[0], given, sizeof(given));
	for (int generation = 0; generation < GENERATIONS; generation++)
		for (int y = 0; y < SIZE; y++)
			for (int x = 0; x < SIZE; x++) {
				const int count = neighbours(cells[generation & 1], x, y);
				const int alive = cells[generation & 1][y][x] ? count == 2 || count == 3 : count == 3;
				cells[~generation & 1][y][x] = (unsigned char)alive;
				sum += (uint64_t)alive;
			}
	return sum;
}
