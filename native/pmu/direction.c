#include "direction.h"

#include <stdlib.h>
#include <string.h>

/* After so many branches, entries become less useful, so that dead ones are replaced. */
enum { AGEING_PERIOD = 1 << 18 };

bool direction_make(struct direction *direction, const struct direction_size *size)
{
	*direction = (struct direction){.size = *size};
	direction->base = malloc((size_t)1 << size->base_bits);
	bool sound = direction->base != NULL;
	for (uint32_t i = 0; i < size->tables; i++) {
		const uint32_t length = size->history[i];
		/*
		 * With an even number of bits, one of two branches of a loop would reach only half
		 * of the table.
		 */
		direction->index[i] = (struct folded){0, length, size->table_bits | 1};
		direction->tag[i] = (struct folded){0, length, TAG_BITS};
		direction->tag_again[i] = (struct folded){0, length, TAG_BITS - 1};
		direction->tables[i] = malloc(sizeof(struct tagged) << size->table_bits);
		sound = sound && direction->tables[i] != NULL;
	}
	if (sound)
		direction_clear(direction);
	return sound;
}

void direction_clear(struct direction *direction)
{
	/* Weakly not taken. */
	memset(direction->base, 1, (size_t)1 << direction->size.base_bits);
	for (uint32_t i = 0; i < direction->size.tables; i++) {
		memset(direction->tables[i], 0, sizeof(struct tagged) << direction->size.table_bits);
		direction->index[i].value = direction->tag[i].value = direction->tag_again[i].value = 0;
	}
	memset(direction->history, 0, sizeof(direction->history));
	direction->newest = direction->branches = 0;
}

/* A bit enters at the bottom, and the one that is `length` branches old leaves. */
static void fold(struct folded *folded, uint32_t entering, uint32_t leaving)
{
	folded->value = folded->value << 1 | entering;
	folded->value ^= leaving << folded->length % folded->bits;
	folded->value ^= folded->value >> folded->bits;
	folded->value &= (1u << folded->bits) - 1;
}

static void remember(struct direction *direction, bool taken)
{
	direction->newest = (direction->newest + 1) % MAX_HISTORY;
	direction->history[direction->newest] = taken;
	for (uint32_t i = 0; i < direction->size.tables; i++) {
		const uint32_t length = direction->index[i].length;
		const uint32_t oldest =
			(direction->newest + MAX_HISTORY - length) % MAX_HISTORY;
		const uint32_t leaving = direction->history[oldest];
		fold(&direction->index[i], taken, leaving);
		fold(&direction->tag[i], taken, leaving);
		fold(&direction->tag_again[i], taken, leaving);
	}
}

static void age(struct direction *direction)
{
	for (uint32_t i = 0; i < direction->size.tables; i++)
		for (size_t at = 0; at < (size_t)1 << direction->size.table_bits; at++)
			direction->tables[i][at].useful >>= 1;
}

static void move(int8_t *counter, bool up, int8_t min, int8_t max)
{
	if (up && *counter < max)
		++*counter;
	else if (!up && *counter > min)
		--*counter;
}

/*
 * A table with a longer history takes the branch that the tables up to `provider` predicted wrong.
 */
static void allocate(struct direction *direction, struct tagged *const *entries,
		     const uint16_t *tags, int provider, bool taken)
{
	const int tables = (int)direction->size.tables;

	for (int i = provider + 1; i < tables; i++) {
		if (entries[i]->useful == 0) {
			*entries[i] = (struct tagged){tags[i], taken ? 0 : -1, 0};
			return;
		}
	}
	for (int i = provider + 1; i < tables; i++)
		entries[i]->useful--;
}

bool direction_resolve(struct direction *direction, uint64_t address, bool taken)
{
	const struct direction_size *size = &direction->size;
	struct tagged *entries[MAX_TABLES];
	uint16_t tags[MAX_TABLES];
	int provider = -1, alternative = -1;
	/* Addresses of fixed-length instructions have constant low bits; others do not. */
	const uint64_t hashed = address ^ address >> 2;

	for (uint32_t i = 0; i < size->tables; i++) {
		const uint32_t folded = direction->index[i].value;
		const uint64_t at = hashed ^ hashed >> (size->table_bits - i) ^ folded ^
				    folded >> size->table_bits;
		entries[i] = &direction->tables[i][at & (((uint64_t)1 << size->table_bits) - 1)];
		/* Never zero, which marks an empty entry. */
		tags[i] = (uint16_t)(((hashed ^ direction->tag[i].value ^
				       (uint64_t)direction->tag_again[i].value << 1) &
				      ((1u << TAG_BITS) - 1)) |
				     1u << TAG_BITS);
		if (entries[i]->tag == tags[i]) {
			alternative = provider;
			provider = (int)i;
		}
	}

	int8_t *base = &direction->base[hashed & (((uint64_t)1 << size->base_bits) - 1)];
	const bool by_base = *base >= 2;
	const bool by_alternative = alternative < 0 ? by_base : entries[alternative]->counter >= 0;
	bool predicted = by_base;
	if (provider >= 0) {
		struct tagged *entry = entries[provider];
		const bool by_provider = entry->counter >= 0;
		const bool is_new =
			entry->useful == 0 && (entry->counter == 0 || entry->counter == -1);
		predicted = is_new ? by_alternative : by_provider;
		if (by_provider != by_alternative)
			move(&entry->useful, by_provider == taken, 0, 3);
		move(&entry->counter, taken, -4, 3);
		if (by_provider != taken)
			allocate(direction, entries, tags, provider, taken);
	} else {
		move(base, taken, 0, 3);
		if (by_base != taken)
			allocate(direction, entries, tags, provider, taken);
	}
	if (++direction->branches % AGEING_PERIOD == 0)
		age(direction);
	remember(direction, taken);
	return predicted == taken;
}
