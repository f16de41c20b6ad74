/* A Huffman code: counted, built, and used to encode and decode bit by bit. */
#include "work.h"

enum { LENGTH = 30000, SYMBOLS = 64 };
static unsigned char given[LENGTH], bits[LENGTH * 2], decoded[LENGTH];

struct node {
	uint32_t weight;
	int16_t children[2], parent;
};

static void prepare(uint64_t state)
{
	for (size_t i = 0; i < LENGTH; i++) {
		const uint32_t drawn = draw(&state);
		given[i] = (unsigned char)((drawn & 7) * (drawn >> 3 & 7) + (drawn >> 6 & 3));
	}
}

static int build(struct node *nodes)
{
	int count = SYMBOLS;

	for (int i = 0; i < SYMBOLS; i++)
		nodes[i] = (struct node){1, {-1, -1}, -1};
	for (size_t i = 0; i < LENGTH; i++)
		nodes[given[i] % SYMBOLS].weight++;
	for (int left = SYMBOLS; left > 1; left--) {
		int least[2] = {-1, -1};
		for (int i = 0; i < count; i++) {
			if (nodes[i].parent >= 0)
				continue;
			if (least[0] < 0 || nodes[i].weight < nodes[least[0]].weight) {
				least[1] = least[0];
				least[0] = i;
			} else if (least[1] < 0 || nodes[i].weight < nodes[least[1]].weight) {
				least[1] = i;
			}
		}
		nodes[count] = (struct node){nodes[least[0]].weight + nodes[least[1]].weight,
					     {(int16_t)least[0], (int16_t)least[1]},
					     -1};
		nodes[least[0]].parent = nodes[least[1]].parent = (int16_t)count;
		count++;
	}
	return count - 1;
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	struct node nodes[2 * SYMBOLS];
	const int root = build(nodes);
	size_t out = 0;

	memset(bits, 0, sizeof(bits));
	for (size_t i = 0; i < LENGTH; i++) {
		unsigned char path[SYMBOLS];
		int length = 0;
		for (int node = given[i] % SYMBOLS; node != root; node = nodes[node].parent)
			path[length++] = nodes[nodes[node].parent].children[1] == node;
		for (; length > 0; out++)
			bits[out / 8] |= (unsigned char)(path[--length] << out % 8);
	}
	for (size_t i = 0, bit = 0; i < LENGTH; i++) {
		int node = root;
		for (; nodes[node].children[0] >= 0; bit++)
			node = nodes[node].children[bits[bit / 8] >> bit % 8 & 1];
		decoded[i] = (unsigned char)node;
	}
	return out * 31 + decoded[LENGTH / 2];
}
