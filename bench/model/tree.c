/* A binary search tree: insertions, look-ups, and a walk in order. */
#include "work.h"

enum { NODES = 6000 };

struct node {
	struct node *children[2];
	uint32_t key;
	uint32_t count;
};
static struct node nodes[NODES];
static size_t used;

static struct node *find(struct node **root, uint32_t key)
{
	while (*root != NULL && (*root)->key != key)
		root = &(*root)->children[key > (*root)->key];
	if (*root == NULL) {
		*root = &nodes[used++];
		**root = (struct node){{NULL, NULL}, key, 0};
	}
	return *root;
}

static uint64_t walk(const struct node *node, uint64_t sum)
{
	if (node == NULL)
		return sum;
	sum = walk(node->children[0], sum);
	sum = sum * 31 + node->key + node->count;
	return walk(node->children[1], sum);
}

uint64_t work(uint64_t seed)
{
	struct node *root = NULL;
	uint64_t state = seed;

	used = 0;
	for (int i = 0; i < 30000; i++)
		find(&root, draw(&state) % NODES)->count++;
	return walk(root, 0);
}
