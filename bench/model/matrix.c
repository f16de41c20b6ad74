/* Products of matrices of doubles, one of them by columns. */
#include "work.h"

enum { SIZE = 120 };
static double left[SIZE][SIZE], right[SIZE][SIZE], product[SIZE][SIZE];

static void prepare(uint64_t state)
{
	for (int i = 0; i < SIZE; i++)
		for (int j = 0; j < SIZE; j++) {
			left[i][j] = draw(&state) % 1000 / 1000.0;
			right[i][j] = draw(&state) % 1000 / 1000.0;
		}
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	double trace = 0;

	for (int i = 0; i < SIZE; i++)
		for (int j = 0; j < SIZE; j++) {
			double sum = 0;
			for (int k = 0; k < SIZE; k++)
				sum += left[i][k] * right[k][j];
			product[i][j] = sum;
		}
	for (int i = 0; i < SIZE; i++)
		trace += product[i][i];
	return (uint64_t)trace;
}
