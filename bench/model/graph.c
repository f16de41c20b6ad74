/* Breadth-first search and connected components of a random graph. */
#include "work.h"

enum { NODES = 8000, EDGES = 24000 };
static uint32_t starts[NODES + 1], targets[2 * EDGES], distances[NODES], queue[NODES], parents[NODES];

static void prepare(uint64_t state)
{
	static uint32_t ends[EDGES][2], filled[NODES];

	memset(starts, 0, sizeof(starts));
	memset(filled, 0, sizeof(filled));

	for (int i = 0; i < EDGES; i++)
		for (int k = 0; k < 2; k++) {
			ends[i][k] = draw(&state) % NODES;
			starts[ends[i][k] + 1]++;
		}
	for (int i = 0; i < NODES; i++)
		starts[i + 1] += starts[i];
	for (int i = 0; i < EDGES; i++)
		for (int k = 0; k < 2; k++) {
			const uint32_t from = ends[i][k];
			targets[starts[from] + filled[from]++] = ends[i][1 - k];
		}
}

static uint64_t search(uint32_t from)
{
	uint64_t sum = 0;
	size_t head = 0, tail = 0;

	memset(distances, 0xff, sizeof(distances));
	distances[from] = 0;
	queue[tail++] = from;
	while (head < tail) {
		const uint32_t node = queue[head++];
		for (uint32_t edge = starts[node]; edge < starts[node + 1]; edge++) {
			const uint32_t next = targets[edge];
			if (distances[next] != UINT32_MAX)
				continue;
			distances[next] = distances[node] + 1;
			sum += distances[next];
			queue[tail++] = next;
		}
	}
	return sum;
}

static uint32_t root(uint32_t node)
{
	while (parents[node] != node)
		node = parents[node] = parents[parents[node]];
	return node;
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	uint64_t sum = 0, parts = NODES;

	for (uint32_t i = 0; i < 4; i++)
		sum = sum * 31 + search(i * 1000);
	for (uint32_t i = 0; i < NODES; i++)
		parents[i] = i;
	for (uint32_t node = 0; node < NODES; node++)
		for (uint32_t edge = starts[node]; edge < starts[node + 1]; edge++) {
			const uint32_t one = root(node), other = root(targets[edge]);
			if (one != other) {
				parents[one] = other;
				parts--;
			}
		}
	return sum + parts;
}
