/*
 * The sizes of the pages that user code and data are in. QEMU's plugin interface does not report
 * them, so the plugin walks the page tables as a processor does. It reads them in the guest's
 * memory, which QEMU has mapped from a memory-backend-memfd; the guest does not notice.
 */
#ifndef MEPOF_PMU_PAGES_H
#define MEPOF_PMU_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Base-2 logarithm of the size of the smallest pages; 0 stands for a page of unknown size. */
enum { UNKNOWN_PAGE = 0, SMALL_PAGE = 12 };

/* The guest's memory in this process. */
struct guest_memory {
	const uint8_t *bytes;
	uint64_t first; /* physical address of the first byte */
	uint64_t size;
};

/* Where a processor finds the page tables of user addresses. Without a root they are unknown. */
struct page_tables {
	uint64_t root;    /* value of the register that locates them: CR3, TTBR0_EL1 */
	uint64_t control; /* value of the register that sets their format: CR4, TCR_EL1 */
};

/*
 * How an architecture's page tables are read. Each architecture is one file, pages_ARCH.c, which
 * defines one and registers it with PAGE_FORMAT(); the Makefile compiles what is there.
 */
struct page_format {
	/* As in qemu-system-NAME. */
	const char *name;
	/* The register of page_tables.control, by its name in QEMU's gdbstub. */
	const char *control;
	/* Physical address of the first byte of QEMU's machine, and how many bytes follow it. */
	uint64_t memory, memory_size;
	/* Base-2 logarithm of the size of the page; UNKNOWN_PAGE if it is not mapped. */
	uint32_t (*page_bits)(const struct guest_memory *memory, const struct page_tables *tables,
			      uint64_t address);
};

#define PAGE_FORMAT(format)                                                                      \
	static const struct page_format *const format##_registered                               \
		__attribute__((section("page_formats"), used)) = &format

/* The one with that name, or NULL. */
const struct page_format *page_format(const char *name);

/* Finds the memory that QEMU has mapped from a memfd; false if there is none. */
bool guest_memory_find(struct guest_memory *memory, const struct page_format *format);

/* Reads an entry of a page table; 0, which maps nothing, where there is no memory. */
uint64_t page_entry(const struct guest_memory *memory, uint64_t physical);

#endif
