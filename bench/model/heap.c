/* A binary heap as a queue of events: each event that is taken gives rise to another. */
#include "work.h"

enum { SIZE = 4096, EVENTS = 30000 };
static uint64_t heap[SIZE + 1];
static size_t filled;

static void push(uint64_t key)
{
	size_t at = ++filled;

	for (; at > 1 && heap[at / 2] > key; at /= 2)
		heap[at] = heap[at / 2];
	heap[at] = key;
}

static uint64_t pop(void)
{
	const uint64_t least = heap[1], last = heap[filled--];
	size_t at = 1;

	while (2 * at <= filled) {
		size_t child = 2 * at;
		if (child < filled && heap[child + 1] < heap[child])
			child++;
		if (heap[child] >= last)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return least;
}

uint64_t work(uint64_t seed)
{
	uint64_t state = seed, sum = 0;

	filled = 0;
	for (int i = 0; i < 2000; i++)
		push(draw(&state) % 100000);
	for (int i = 0; i < EVENTS; i++) {
		const uint64_t time = pop();
		sum = sum * 31 + time;
		push(time + draw(&state) % 5000);
	}
	return sum;
}
