/* A hash table of words, by FNV-1a, with open addressing: insertions and look-ups. */
#include "work.h"

enum { WORDS = 6000, SLOTS = 16384, LONGEST = 16 };
static char words[WORDS][LONGEST];
static const char *slots[SLOTS];
static unsigned counts[SLOTS];

static uint64_t hash_of(const char *word)
{
	uint64_t hash = 0xcbf29ce484222325u;

	while (*word)
		hash = (hash ^ (unsigned char)*word++) * 0x100000001b3u;
	return hash;
}

static size_t find(const char *word)
{
	size_t at = hash_of(word) % SLOTS;

	while (slots[at] != NULL && strcmp(slots[at], word) != 0)
		at = (at + 1) % SLOTS;
	return at;
}

static void prepare(uint64_t state)
{
	for (size_t i = 0; i < WORDS; i++) {
		const size_t length = 3 + draw(&state) % (LONGEST - 4);
		for (size_t at = 0; at < length; at++)
			words[i][at] = (char)('a' + draw(&state) % 26);
		words[i][length] = '\0';
	}
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	uint64_t state = seed, sum = 0;

	memset(slots, 0, sizeof(slots));
	memset(counts, 0, sizeof(counts));
	for (int i = 0; i < 40000; i++) {
		const uint32_t drawn = draw(&state);
		const char *word = words[(drawn % WORDS) * (uint64_t)(drawn >> 16 & 0xff) / 256];
		const size_t at = find(word);
		if (slots[at] == NULL)
			slots[at] = word;
		sum += ++counts[at];
	}
	return sum;
}
