// SPDX-License-Identifier: GPL-2.0
/* The allocators, page faults, and a control that calls nothing. */
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "kload.h"

#define AT 0x10000000UL
#define OBJECTS 8

static struct mm_struct *mm;
static char *bytes;
static u32 expected;

static int allocate_objects(unsigned int batch)
{
	void *objects[OBJECTS];
	unsigned int i;

	while (batch--) {
		for (i = 0; i < OBJECTS; i++)
			objects[i] = kmalloc(192, GFP_KERNEL);
		for (i = 0; i < OBJECTS; i++) {
			if (!objects[i])
				return -ENOMEM;
			kfree(objects[i]);
		}
	}
	return 0;
}

static int allocate_pages(unsigned int batch)
{
	struct page *pages[OBJECTS];
	unsigned int i;

	while (batch--) {
		for (i = 0; i < OBJECTS; i++)
			pages[i] = alloc_page(GFP_KERNEL);
		for (i = 0; i < OBJECTS; i++) {
			if (!pages[i])
				return -ENOMEM;
			__free_page(pages[i]);
		}
	}
	return 0;
}

static int take_mm(void)
{
	mm = mm_alloc();
	if (!mm)
		return -ENOMEM;
	mm->task_size = TASK_SIZE;
	kthread_use_mm(mm);
	return 0;
}

static void leave_mm_of_case(void)
{
	kthread_unuse_mm(mm);
	mmput(mm);
}

/* Maps a page for each operation, has each populated as by a write, and unmaps all. */
static int fault(unsigned int batch)
{
	unsigned long size = batch * PAGE_SIZE, at;
	int error = 0, unmapped;

	at = vm_mmap(NULL, AT, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, 0);
	if (IS_ERR_VALUE(at))
		return at;
	for (; !error && at < AT + size; at += PAGE_SIZE) {
		mmap_read_lock(mm);
		error = fixup_user_fault(mm, at, FAULT_FLAG_WRITE, NULL);
		mmap_read_unlock(mm);
	}
	unmapped = vm_munmap(AT, size);
	return error ?: unmapped;
}

/* Adler-32, whose next sum needs the one before: nothing to vectorise or unroll. */
noinline u32 kload_checksum(const char *data, size_t size)
{
	u32 low = 1, high = 0;

	while (size--) {
		low = (low + (u8)*data++) % 65521;
		high = (high + low) % 65521;
	}
	return high << 16 | low;
}

static int fill_bytes(void)
{
	size_t i;

	bytes = kmalloc(SZ_4K, GFP_KERNEL);
	if (!bytes)
		return -ENOMEM;
	for (i = 0; i < SZ_4K; i++)
		bytes[i] = i * 31;
	expected = kload_checksum(bytes, SZ_4K);
	return 0;
}

static int sum_bytes(unsigned int batch)
{
	while (batch--)
		if (kload_checksum(bytes, SZ_4K) != expected)
			return -EIO;
	return 0;
}

static int check_sum(u32 *sum)
{
	*sum = expected;
	return 0;
}

static void free_bytes(void)
{
	kfree(bytes);
}

const struct kload_case kload_memory[] = {
	{ "kmalloc", 100, NULL, allocate_objects, NULL },
	{ "alloc-page", 100, NULL, allocate_pages, NULL },
	{ "fault", 64, take_mm, fault, leave_mm_of_case },
	{ "checksum", 10, fill_bytes, sum_bytes, free_bytes, check_sum },
	{ }
};
