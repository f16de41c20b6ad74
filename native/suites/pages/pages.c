/*
 * pages: work on large buffers in pages of 4 KiB, 64 KiB and 2 MiB. Page sizes are verified, since
 * the kernel may silently give smaller pages than requested.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../case.h"

#define KIB 1024ul
#define MIB (1024 * KIB)
#define SMALL (4 * KIB)
#define LARGE (2 * MIB)
#define BUFFER (8 * MIB)
#define WALK (32 * MIB)
#define SETTINGS "/sys/kernel/mm/transparent_hugepage/"
#define POOLS "/sys/kernel/mm/hugepages/"
#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif

const char suite_name[] = "pages";

/* A setting of the kernel that a case changes, and its previous value. */
struct setting {
	char path[128];
	char before[64];
};

static struct setting settings[4];
static unsigned setting_count;

static bool put_text(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const ssize_t size = (ssize_t)strlen(text);

	if (fd < 0)
		return false;
	const bool put = write(fd, text, (size_t)size) == size;
	return close(fd) == 0 && put;
}

static bool get_text(const char *path, char *text, size_t capacity)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	const ssize_t got = read(fd, text, capacity - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

/* Change a setting; restore() reverts it. A choice reads as `a [b] c`, of which b is set. */
static bool change(const char *path, const char *text)
{
	struct setting *setting = &settings[setting_count];
	char chosen[64];

	if (setting_count == sizeof(settings) / sizeof(settings[0]) ||
	    !get_text(path, chosen, sizeof(chosen)) || !put_text(path, text))
		return false;
	char *from = strchr(chosen, '[');
	char *to = strchr(chosen, ']');
	if (from != NULL && to != NULL) {
		*to = '\0';
		memmove(chosen, from + 1, strlen(from + 1) + 1);
	}
	snprintf(setting->path, sizeof(setting->path), "%s", path);
	snprintf(setting->before, sizeof(setting->before), "%s", chosen);
	setting_count++;
	return true;
}

static void restore(void)
{
	while (setting_count > 0) {
		setting_count--;
		put_text(settings[setting_count].path, settings[setting_count].before);
	}
}

/* Ordinary memory that begins at a multiple of 2 MiB. */
static void *aligned(size_t size)
{
	unsigned char *memory =
		mmap(NULL, size + LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return memory;
	unsigned char *start =
		(unsigned char *)(((uintptr_t)memory + LARGE - 1) & ~(uintptr_t)(LARGE - 1));
	if (start > memory)
		munmap(memory, (size_t)(start - memory));
	munmap(start + size, (size_t)(memory + LARGE - start));
	return start;
}

/* How pages of the current size are obtained. */
static enum { ORDINARY, TRANSPARENT, POOL } way;

static void *map_pages(size_t page, size_t size)
{
	if (way == POOL)
		return mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
				    (int)((unsigned)__builtin_ctzl(page) << MAP_HUGE_SHIFT),
			    -1, 0);
	void *memory = aligned(size);
	if (memory == MAP_FAILED)
		return memory;
	const int advised =
		madvise(memory, size, way == ORDINARY ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
	/* A kernel without larger pages rightly refuses the advice not to use any. */
	if (way == ORDINARY || advised == 0)
		return memory;
	munmap(memory, size);
	return MAP_FAILED;
}

/* Have hugetlb reserve pages, and check that it has. */
static bool fill_pool(size_t page, size_t size)
{
	char path[128];
	char count[32];

	snprintf(path, sizeof(path), POOLS "hugepages-%zukB/nr_hugepages", page / KIB);
	snprintf(count, sizeof(count), "%zu", size / page);
	way = POOL;
	if (!change(path, count))
		return false;
	void *memory = map_pages(page, size);
	if (memory == MAP_FAILED)
		restore();
	return memory != MAP_FAILED && munmap(memory, size) == 0;
}

/*
 * Choose how to obtain pages of that size, or end as unsupported. Pages of 64 KiB come from hugetlb
 * if the processor has them (arm64, by its contiguous entries), otherwise as the kernel's folios of
 * that size. Pages of 2 MiB are transparent ones where possible: where the kernel's own pages are
 * larger than 4 KiB, so are those.
 */
static void choose(size_t page, size_t size)
{
	const size_t least = (size_t)getpagesize();

	if (page < least)
		unsupported("pages-of-4-KiB");
	way = ORDINARY;
	if (page == least || ((page < LARGE || least > SMALL) && fill_pool(page, size)))
		return;
	way = TRANSPARENT;
	if (page < LARGE && change(SETTINGS "hugepages-64kB/enabled", "madvise") &&
	    change(SETTINGS "hugepages-2048kB/enabled", "never"))
		return;
	restore();
	if (page < LARGE)
		unsupported("pages-of-64-KiB");
	if (least > SMALL)
		unsupported("pages-of-2-MiB");
	/* The kernel disables them when memory is scarce. */
	change(SETTINGS "enabled", "madvise");
	void *memory = map_pages(page, size);
	if (memory != MAP_FAILED)
		munmap(memory, size);
	else if (restore(), !fill_pool(page, size))
		unsupported("CONFIG_TRANSPARENT_HUGEPAGE");
}

static bool unmap(void *memory, size_t size)
{
	return munmap(memory, size) == 0 || fault("munmap");
}

/* A number of /proc/self/smaps for the mapping at an address, in bytes; 0 if there is none. */
static size_t of_mapping(const void *memory, const char *name)
{
	char line[256];
	char key[64];
	size_t value = 0;
	bool here = false;
	FILE *maps = fopen("/proc/self/smaps", "re");

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		unsigned long from;
		unsigned long to;
		size_t kib;
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (uintptr_t)memory >= from && (uintptr_t)memory < to;
		else if (here && sscanf(line, "%63[^:]: %zu kB", key, &kib) == 2 &&
			 strcmp(key, name) == 0)
			value = kib * KIB;
	}
	if (maps != NULL)
		fclose(maps);
	return value;
}

static size_t given_of_64k(void)
{
	char text[64] = "";

	get_text(SETTINGS "hugepages-64kB/stats/anon_fault_alloc", text, sizeof(text));
	return strtoul(text, NULL, 10) * 64 * KIB;
}

static void touch(unsigned char *memory, size_t size)
{
	for (size_t at = 0; at < size; at += SMALL)
		memory[at] = (unsigned char)(at >> 12);
}

/* Touch memory and check that it came in pages of that size. */
static bool populate(unsigned char *memory, size_t page, size_t size)
{
	const size_t before = given_of_64k();

	touch(memory, size);
	errno = 0;
	if (of_mapping(memory, "KernelPageSize") == page && way == POOL)
		return true;
	const size_t transparent = of_mapping(memory, "AnonHugePages");
	if (way == ORDINARY)
		return transparent == 0 || fault("pages larger than asked for");
	if (page == LARGE)
		return transparent == size || fault("pages smaller than asked for");
	return (transparent == 0 && given_of_64k() - before >= size) ||
	       fault("pages of another size than asked for");
}

/* fault: map a buffer, touch all of it and unmap it. That is an operation. */

static bool map_and_touch(size_t page, unsigned long operations)
{
	for (unsigned long i = 0; i < operations; i++) {
		unsigned char *memory = map_pages(page, BUFFER);
		if (memory == MAP_FAILED)
			return fault("map a buffer");
		touch(memory, BUFFER);
		const size_t last = BUFFER - SMALL;
		if (memory[last] != (unsigned char)((last >> 12) + damaged()))
			return fault("contents of a buffer");
		if (!unmap(memory, BUFFER))
			return false;
	}
	return true;
}

static bool run_fault(const struct suite_case *is, unsigned long operations)
{
	choose(is->size, BUFFER);
	unsigned char *memory = map_pages(is->size, BUFFER);
	if (memory == MAP_FAILED)
		return fault("map a buffer");
	bool sound = populate(memory, is->size, BUFFER) && unmap(memory, BUFFER);
	if (sound) {
		measure_begin();
		sound = map_and_touch(is->size, operations);
		measure_end();
		/* It gave such pages before, and still does. */
		memory = map_pages(is->size, BUFFER);
		sound = sound && memory != MAP_FAILED && populate(memory, is->size, BUFFER) &&
			unmap(memory, BUFFER);
	}
	restore();
	return sound;
}

/* blend: each pixel of one buffer over the other's, as a screen is drawn. */

static void blend(uint32_t *under, const uint32_t *over, size_t count)
{
	for (size_t i = 0; i < count; i++)
		under[i] = ((under[i] >> 1) & 0x7f7f7f7f) + ((over[i] >> 1) & 0x7f7f7f7f);
}

static bool run_blend(const struct suite_case *is, unsigned long operations)
{
	const size_t half = BUFFER / 2;

	choose(is->size, BUFFER);
	unsigned char *both = map_pages(is->size, BUFFER);
	if (both == MAP_FAILED)
		return fault("map a buffer");
	bool sound = populate(both, is->size, BUFFER);
	memset(both, 0, half);
	memset(both + half, 0x80, half);
	if (sound) {
		measure_begin();
		for (unsigned long i = 0; i < operations; i++)
			blend((uint32_t *)both, (const uint32_t *)(both + half), half / sizeof(uint32_t));
		measure_end();
	}
	/* Halves the distance to the upper one each time. */
	unsigned expected = 0;
	for (unsigned long i = 0; i < operations; i++)
		expected = (expected >> 1) + 0x40;
	for (size_t at = 0; sound && at < half; at += SMALL)
		if (both[at] != (unsigned char)(expected + damaged()))
			sound = fault("contents of a buffer");
	sound = unmap(both, BUFFER) && sound;
	restore();
	return sound;
}

/* walk: from one line of memory to the next that it names, each in another page of 4 KiB. */

static void chain(uint32_t *memory, size_t count, size_t stride)
{
	static uint32_t order[WALK / SMALL];
	uint32_t state = 2463534242u;

	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	for (uint32_t i = (uint32_t)count - 1; i > 0; i--) {
		state ^= state << 13;
		state ^= state >> 17;
		state ^= state << 5;
		const uint32_t other = state % (i + 1);
		const uint32_t held = order[i];
		order[i] = order[other];
		order[other] = held;
	}
	/* Another cache line in each page, so that not all are in one set. */
	for (size_t i = 0; i < count; i++) {
		const uint32_t next = order[(i + 1) % count];
		memory[order[i] * stride + order[i] % 64 * 16] =
			next * (uint32_t)stride + next % 64 * 16;
	}
}

static bool run_walk(const struct suite_case *is, unsigned long operations)
{
	const size_t count = WALK / SMALL;

	choose(is->size, WALK);
	uint32_t *memory = map_pages(is->size, WALK);
	if (memory == MAP_FAILED)
		return fault("map a buffer");
	bool sound = populate((unsigned char *)memory, is->size, WALK);
	memset(memory, 0, WALK);
	chain(memory, count, SMALL / sizeof(*memory));
	if (sound) {
		uint32_t at = 0;
		/* Whole rounds end where they began. */
		const unsigned long rounds = operations / count + 1;
		operations_done(rounds * count);
		measure_begin();
		for (unsigned long i = 0; i < rounds * count; i++)
			at = memory[at];
		measure_end();
		errno = 0;
		sound = at == 0u + damaged() || fault("the end of a walk");
	}
	sound = unmap(memory, WALK) && sound;
	restore();
	return sound;
}

#define SIZES(name, operations, run)                                                    \
	{name "-4k", (operations), SMALL, 1, run}, {name "-64k", (operations), 64 * KIB, 1, run}, \
	{                                                                                   \
		name "-2m", (operations), LARGE, 1, run                                     \
	}

const struct suite_case suite_cases[] = {
	SIZES("fault", 10, run_fault),
	SIZES("blend", 8, run_blend),
	SIZES("walk", 1000000, run_walk),
};
const size_t suite_case_count = sizeof(suite_cases) / sizeof(suite_cases[0]);
