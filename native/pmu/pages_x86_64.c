/*
 * Page tables of x86-64: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3,
 * "4-level paging and 5-level paging".
 */
#include "pages.h"

enum {
	INDEX_BITS = 9,
	LEVELS = 4,
	MAX_LEVEL_OF_PAGES = 2, /* 1 GiB */
	PRESENT = 1 << 0,
	LARGE = 1 << 7,
	CR4_LA57 = 1 << 12,
};

#define TABLE_ADDRESS 0x000ffffffffff000

static uint32_t page_bits(const struct guest_memory *memory, const struct page_tables *tables,
			  uint64_t address)
{
	uint64_t table = tables->root & TABLE_ADDRESS;

	if (table == 0)
		return UNKNOWN_PAGE;
	for (int level = LEVELS - 1 + !!(tables->control & CR4_LA57); level >= 0; level--) {
		const uint32_t shift = SMALL_PAGE + (uint32_t)level * INDEX_BITS;
		const uint64_t index = address >> shift & ((1 << INDEX_BITS) - 1);
		const uint64_t entry = page_entry(memory, table + index * sizeof(entry));
		if ((entry & PRESENT) == 0)
			return UNKNOWN_PAGE;
		if (level == 0 || (level <= MAX_LEVEL_OF_PAGES && (entry & LARGE) != 0))
			return shift;
		table = entry & TABLE_ADDRESS;
	}
	return UNKNOWN_PAGE;
}

static const struct page_format x86_64 = {
	.name = "x86_64",
	.control = "cr4",
	/* Of the machine microvm; what exceeds it follows at 4 GiB, and is not read here. */
	.memory_size = (uint64_t)3 << 30,
	.page_bits = page_bits,
};
PAGE_FORMAT(x86_64);
