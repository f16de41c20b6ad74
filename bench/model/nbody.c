/* Bodies that attract each other, in small steps of time. */
#include "work.h"

enum { BODIES = 24, STEPS = 220 };
static double start[BODIES][7];

static void prepare(uint64_t state)
{
	for (int i = 0; i < BODIES; i++)
		for (int k = 0; k < 7; k++)
			start[i][k] = draw(&state) % 2000 / 1000.0 - (k < 6 ? 1 : 0);
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	double body[BODIES][7], energy = 0;

	memcpy(body, start, sizeof(body));
	for (int step = 0; step < STEPS; step++) {
		for (int i = 0; i < BODIES; i++)
			for (int j = i + 1; j < BODIES; j++) {
				const double x = body[i][0] - body[j][0];
				const double y = body[i][1] - body[j][1];
				const double z = body[i][2] - body[j][2];
				const double square = x * x + y * y + z * z + 0.01;
				const double force = 1e-4 / (square * square);
				body[i][3] -= x * force * body[j][6];
				body[i][4] -= y * force * body[j][6];
				body[i][5] -= z * force * body[j][6];
				body[j][3] += x * force * body[i][6];
				body[j][4] += y * force * body[i][6];
				body[j][5] += z * force * body[i][6];
			}
		for (int i = 0; i < BODIES; i++)
			for (int k = 0; k < 3; k++)
				body[i][k] += 1e-3 * body[i][k + 3];
	}
	for (int i = 0; i < BODIES; i++)
		energy += body[i][3] * body[i][3] + body[i][4] * body[i][4];
	return (uint64_t)(energy * 1000);
}
