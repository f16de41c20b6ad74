/* Linked lists whose nodes lie in disorder: walked, turned round, filtered. */
#include "work.h"

enum { NODES = 20000 };

struct node {
	struct node *next;
	uint64_t value[3];
};
static struct node nodes[NODES];
static struct node *first;

static void prepare(uint64_t state)
{
	static uint32_t order[NODES];

	first = NULL;

	for (uint32_t i = 0; i < NODES; i++)
		order[i] = i;
	for (uint32_t i = NODES - 1; i > 0; i--) {
		const uint32_t other = draw(&state) % (i + 1), swapped = order[i];
		order[i] = order[other];
		order[other] = swapped;
	}
	for (uint32_t i = 0; i < NODES; i++) {
		nodes[order[i]].value[0] = draw(&state);
		nodes[order[i]].next = first;
		first = &nodes[order[i]];
	}
}

static void turn(void)
{
	struct node *done = NULL;

	while (first != NULL) {
		struct node *next = first->next;
		first->next = done;
		done = first;
		first = next;
	}
	first = done;
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	uint64_t sum = 0;

	for (int i = 0; i < 8; i++) {
		turn();
		for (const struct node *node = first; node != NULL; node = node->next) {
			if (node->value[0] % 8 == (uint64_t)i)
				sum += node->value[0];
			else if (node->value[0] & 0x100)
				sum ^= node->value[0] << 3;
		}
	}
	return sum;
}
