/* Spheres and a plane by their distance, marched along rays. */
#include "work.h"

enum { SIZE = 48, STEPS = 60 };

struct vector {
	float x, y, z;
};

static const struct vector usual[] = {{0, 0, 4}, {1.2f, 0.4f, 3}, {-1, -0.3f, 5}, {0.3f, 1, 6}};
enum { SPHERES = sizeof(usual) / sizeof(*usual) };
static struct vector spheres[SPHERES];

static float root(float square)
{
	float guess = square > 1 ? square / 2 : 1;

	for (int i = 0; i < 6; i++)
		guess = 0.5f * (guess + square / guess);
	return guess;
}

static float distance(struct vector at)
{
	float least = at.y + 1.5f;

	for (size_t i = 0; i < SPHERES; i++) {
		const float x = at.x - spheres[i].x, y = at.y - spheres[i].y, z = at.z - spheres[i].z;
		const float here = root(x * x + y * y + z * z) - 0.7f;
		if (here < least)
			least = here;
	}
	return least;
}

uint64_t work(uint64_t seed)
{
	uint64_t state = seed, sum = 0;

	for (size_t i = 0; i < SPHERES; i++) {
		spheres[i] = usual[i];
		spheres[i].x += draw(&state) % 1000 / 1000.0f;
		spheres[i].z += draw(&state) % 1000 / 1000.0f;
	}
	for (int row = 0; row < SIZE; row++)
		for (int column = 0; column < SIZE; column++) {
			const struct vector ray = {(float)(column - SIZE / 2) / SIZE,
						   (float)(row - SIZE / 2) / SIZE, 1};
			float gone = 0;
			int step = 0;
			for (; step < STEPS && gone < 20; step++) {
				const struct vector at = {ray.x * gone, ray.y * gone, ray.z * gone};
				const float left = distance(at);
				if (left < 0.01f)
					break;
				gone += left;
			}
			sum = sum * 31 + (uint64_t)step;
		}
	return sum;
}
