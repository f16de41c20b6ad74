/*
 * Page tables of arm64: Arm Architecture Reference Manual for A-profile architecture, DDI 0487,
 * "The AArch64 Virtual Memory System Architecture". Bits of output addresses from 48 on, which
 * FEAT_LPA and FEAT_LPA2 store elsewhere, are 0 in the guest's memory.
 */
#include "pages.h"

enum {
	VALID = 1 << 0,
	TABLE = 1 << 1, /* in the last level: a page */
	LAST_LEVEL = 3,
	ADDRESS_BITS = 48,
	MAX_USED_BITS = 52,
};

#define CONTIGUOUS ((uint64_t)1 << 52)

/* Base-2 logarithms, of a translation granule. */
struct granule {
	uint32_t page;
	/* How many entries the contiguous bit joins, at level 2 and at level 3. */
	uint32_t contiguous[2];
	int first_level_of_blocks;
};

/* By TCR_EL1.TG0. */
static const struct granule granules[] = {{12, {4, 4}, 1}, {16, {5, 5}, 2}, {14, {5, 7}, 2}};

static uint64_t bits_of(uint64_t value, uint32_t from, uint32_t count)
{
	return value >> from & (((uint64_t)1 << count) - 1);
}

/* The size of the page of an entry that ends the walk. */
static uint32_t bits_of_leaf(const struct granule *granule, int level, uint32_t shift,
			     uint64_t entry)
{
	const bool is_page = (entry & TABLE) != 0;

	if (is_page != (level == LAST_LEVEL) || level < granule->first_level_of_blocks)
		return UNKNOWN_PAGE;
	if (level < 2 || (entry & CONTIGUOUS) == 0)
		return shift;
	return shift + granule->contiguous[level - 2];
}

static uint32_t page_bits(const struct guest_memory *memory, const struct page_tables *tables,
			  uint64_t address)
{
	const uint64_t kind = bits_of(tables->control, 14, 2);
	/* Bit 0 of TTBR0_EL1 and those above the address are not part of it. */
	uint64_t table = bits_of(tables->root, 1, ADDRESS_BITS - 1) << 1;
	const uint32_t used = 64 - (uint32_t)bits_of(tables->control, 0, 6);

	if (table == 0 || kind >= sizeof(granules) / sizeof(*granules) || used > MAX_USED_BITS ||
	    used <= granules[kind].page)
		return UNKNOWN_PAGE;
	const struct granule *granule = &granules[kind];
	const uint32_t index_bits = granule->page - 3;
	/* The first level has the highest bits of the address, often fewer than other levels. */
	const uint32_t further = (used - granule->page - 1) / index_bits;
	uint32_t shift = granule->page + further * index_bits;
	uint32_t count = used - shift;

	for (int level = LAST_LEVEL - (int)further;; level++) {
		const uint64_t index = bits_of(address, shift, count);
		const uint64_t entry = page_entry(memory, table + index * sizeof(entry));
		if ((entry & VALID) == 0)
			return UNKNOWN_PAGE;
		if (level == LAST_LEVEL || (entry & TABLE) == 0)
			return bits_of_leaf(granule, level, shift, entry);
		table = bits_of(entry, granule->page, ADDRESS_BITS - granule->page) << granule->page;
		shift -= index_bits;
		count = index_bits;
	}
}

static const struct page_format aarch64 = {
	.name = "aarch64",
	.control = "TCR_EL1",
	/* Of the machine virt. */
	.memory = (uint64_t)1 << 30,
	.memory_size = UINT64_MAX,
	.page_bits = page_bits,
};
PAGE_FORMAT(aarch64);
