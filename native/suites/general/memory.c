/* Address spaces: what is mapped where, and pages that come when they are touched. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "general.h"

#ifndef MADV_COLD
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

static unsigned char *map(size_t size, int protection, int flags, int fd, off_t at)
{
	void *memory = mmap(NULL, size, protection, flags, fd, at);

	if (memory == MAP_FAILED)
		fault("mmap");
	return memory == MAP_FAILED ? NULL : memory;
}

static unsigned char *map_private(size_t size)
{
	return map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* A region that is split, merged, punched and grown, as allocators and loaders do. */
static bool shapes(unsigned round)
{
	const size_t pages = 48 + round % 7;
	unsigned char *region = map_private(pages * PAGE);
	unsigned char seen[64];

	if (region == NULL)
		return false;
	for (size_t i = 0; i < pages; i += 3)
		region[i * PAGE] = (unsigned char)(i + round);
	/* Every fourth page becomes an area of its own, and joins its neighbours again. */
	for (size_t i = 0; i < pages; i += 4)
		TRY(mprotect(region + i * PAGE, PAGE, PROT_READ) == 0, "mprotect");
	TRY(mincore(region, pages * PAGE, seen) == 0 && (seen[0] & 1) == 1, "mincore");
	for (size_t i = 0; i < pages; i += 4)
		TRY(mprotect(region + i * PAGE, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
	/* Holes, which later mappings fill. */
	for (size_t i = 5; i + 2 < pages; i += 11)
		TRY(munmap(region + i * PAGE, 2 * PAGE) == 0, "munmap");
	for (size_t i = 5; i + 2 < pages; i += 11)
		TRY(mmap(region + i * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == region + i * PAGE,
		    "a fixed mapping");
	TRY(region[5 * PAGE] == 0 && region[9 * PAGE] == (unsigned char)(9 + round + damaged()),
	    "contents of a region");
	unsigned char *grown = mremap(region, pages * PAGE, 3 * pages * PAGE, MREMAP_MAYMOVE);
	TRY(grown != MAP_FAILED && grown[9 * PAGE] == (unsigned char)(9 + round), "a grown region");
	unsigned char *target = map_private(2 * pages * PAGE);
	TRY(target != NULL && mremap(grown + pages * PAGE, pages * PAGE, pages * PAGE,
				     MREMAP_MAYMOVE | MREMAP_FIXED, target) == target,
	    "a moved region");
	TRY(mremap(grown, pages * PAGE, 20 * PAGE, 0) == grown, "a smaller region");
	return munmap(grown, 20 * PAGE) == 0 && munmap(grown + 2 * pages * PAGE, pages * PAGE) == 0 &&
	       munmap(target, 2 * pages * PAGE) == 0;
}

/* A heap by brk: up in uneven steps, and down. */
static bool heap(unsigned round)
{
	/* Raw, because a C library may refuse to move it. */
	unsigned char *const low = (unsigned char *)syscall(SYS_brk, 0);
	unsigned char *top = low;

	for (unsigned i = 0; i < 24; i++) {
		const size_t step = 1300 * (i % 5 + 1) + 64 * round;
		unsigned char *next = (unsigned char *)syscall(SYS_brk, top + step);
		TRY(next == top + step, "a larger heap");
		memset(top, (int)i + 1, step);
		top = next;
	}
	TRY(top[-1] == 24 && low[0] == 1, "contents of a heap");
	return (unsigned char *)syscall(SYS_brk, low) == low || fault("a smaller heap");
}

/* Advice: some of it changes contents, and old kernels know less of it. */
static bool advice(void)
{
	static const int harmless[] = {
		MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTFORK, MADV_DOFORK,
		MADV_DONTDUMP, MADV_DODUMP, MADV_COLD, MADV_PAGEOUT, MADV_HUGEPAGE, MADV_NOHUGEPAGE,
		MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_POPULATE_READ, MADV_POPULATE_WRITE,
	};
	const size_t size = 19 * PAGE;
	unsigned char *memory = map_private(size);

	if (memory == NULL)
		return false;
	memset(memory, 6, size);
	for (size_t i = 0; i < COUNT(harmless); i++)
		/* EBADF: there is no swap to read ahead from. */
		TRY(madvise(memory + PAGE, 7 * PAGE, harmless[i]) == 0 || errno == EINVAL ||
			    errno == ENOSYS || errno == EBADF,
		    "madvise");
	TRY(memory[2 * PAGE] == 6, "contents after advice");
	TRY(madvise(memory + 9 * PAGE, 5 * PAGE, MADV_DONTNEED) == 0 && memory[10 * PAGE] == 0 &&
		    memory[15 * PAGE] == 6,
	    "pages given back");
	TRY(madvise(memory, size, MADV_FREE) == 0 || errno == EINVAL || errno == ENOSYS, "MADV_FREE");
	if (mlock(memory, 6 * PAGE) == 0)
		TRY(munlock(memory, 3 * PAGE) == 0, "munlock");
	else if (!lacks("mlock"))
		return false;
	return munmap(memory, size) == 0;
}

static sigjmp_buf back;
static void *volatile refused_at;

static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	refused_at = info->si_addr;
	siglongjmp(back, 1);
}

/* Whether an access is answered by a signal that names its address. */
static bool is_refused(volatile unsigned char *at, bool write)
{
	refused_at = NULL;
	if (sigsetjmp(back, 1) == 0) {
		if (write)
			*at = 1;
		else
			(void)*at;
		return false;
	}
	return refused_at == at;
}

static bool protections(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	struct sigaction before[2];
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	unsigned char *memory = map_private(9 * PAGE);

	TRY(memory != NULL && zero >= 0, "open /dev/zero");
	sigaction(SIGSEGV, &action, &before[0]);
	sigaction(SIGBUS, &action, &before[1]);
	memset(memory, 3, 9 * PAGE);
	TRY(mprotect(memory + PAGE, PAGE, PROT_READ) == 0 &&
		    mprotect(memory + 2 * PAGE, PAGE, PROT_NONE) == 0 &&
		    munmap(memory + 3 * PAGE, PAGE) == 0,
	    "mprotect");
	TRY(is_refused(memory + PAGE + 5, true) && memory[PAGE + 5] == 3, "a read-only page");
	TRY(is_refused(memory + 2 * PAGE + 7, false), "a page without access");
	TRY(is_refused(memory + 3 * PAGE + 9, false), "a hole");
	/* The kernel's own accesses end the same way, with an error. */
	TRY(read(zero, memory + PAGE, 10) == -1 && errno == EFAULT, "read to a read-only page");
	TRY(read(zero, memory + 2 * PAGE - 10, 30) == -1 || errno == EFAULT, "read over an edge");
	TRY(read(zero, memory + 5 * PAGE, 700) == 700 && memory[5 * PAGE + 699] == 0 &&
		    memory[5 * PAGE + 700] == 3,
	    "read from /dev/zero");
	close(zero);
	sigaction(SIGSEGV, &before[0], NULL);
	sigaction(SIGBUS, &before[1], NULL);
	return munmap(memory, 9 * PAGE) == 0;
}

/* One process reads and writes another's memory. */
static bool across(void)
{
	const size_t size = 5 * PAGE + 123;
	unsigned char *here = malloc(2 * size);

	TRY(here != NULL, "malloc");
	unsigned char *there = here + size;
	pattern(here, size, 4);
	const struct iovec local[2] = {{there, 1000}, {there + 1000, size - 1000}};
	const struct iovec remote[2] = {{here, 3000}, {here + 3000, size - 3000}};
	const ssize_t got = process_vm_readv(getpid(), local, 2, remote, 2, 0);
	if (got < 0) {
		free(here);
		return lacks("CONFIG_CROSS_MEMORY_ATTACH");
	}
	TRY(got == (ssize_t)size && same(here, there, size), "another process's memory");
	free(here);
	return true;
}

bool mappings(unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++) {
		if (!shapes(round) || !heap(round) || !advice() || !protections() || !across())
			return false;
		if (syscall(SYS_membarrier, 0, 0, 0) < 0 && !lacks("CONFIG_MEMBARRIER"))
			return false;
	}
	return true;
}

/* Touches pages in one of four orders: up, down, in strides, at random; each once or more. */
static void touch(unsigned char *memory, size_t pages, unsigned order, unsigned char value)
{
	for (size_t i = 0; i < pages; i++) {
		size_t page = i;
		if (order % 4 == 1)
			page = pages - 1 - i;
		else if (order % 4 == 2)
			page = i * 13 % pages;
		else if (order % 4 == 3)
			page = below((uint32_t)pages);
		memory[page * PAGE + (page * 72) % PAGE] = value;
	}
}

/* Anonymous memory of several sizes, read before it is written or not. */
static bool anonymous(unsigned round)
{
	static const size_t sizes[] = {3, 61, 17, 210, 130, 700};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		const size_t pages = sizes[i];
		unsigned char *memory = map_private(pages * PAGE);
		if (memory == NULL)
			return false;
		if (i % 2 == 0)
			for (size_t page = 0; page < pages; page += 2)
				TRY(memory[page * PAGE] == 0, "fresh memory");
		touch(memory, pages, round + (unsigned)i, 9);
		if ((round + i) % 4 < 3 && pages % 13 != 0)
			TRY(memory[(pages - 1) * PAGE + ((pages - 1) * 72) % PAGE] == 9 + damaged(),
			    "touched memory");
		TRY(munmap(memory, pages * PAGE) == 0, "munmap");
	}
	return true;
}

/* Memory at a multiple of 512 pages, for which the kernel may use larger pages. */
static bool larger_pages(int advised)
{
	const size_t large = 512 * PAGE;
	unsigned char *memory = map_private(3 * large + 5 * PAGE);

	if (memory == NULL)
		return false;
	unsigned char *start = (unsigned char *)(((uintptr_t)memory + large - 1) & ~(large - 1));
	if (madvise(start, 2 * large, advised) != 0 && errno != EINVAL && errno != ENOSYS)
		return fault("advice on larger pages");
	for (size_t at = 0; at < large + 40 * PAGE; at += 3 * PAGE)
		start[at] = (unsigned char)(at / PAGE);
	/* A part is given back, and a child writes to another: both split a large page. */
	TRY(munmap(start + 16 * PAGE, PAGE) == 0, "munmap");
	const pid_t child = fork_child();
	if (child == 0) {
		for (size_t at = 30 * PAGE; at < 90 * PAGE; at += PAGE)
			start[at]++;
		leave(start[30 * PAGE] == 31);
	}
	TRY(child > 0 && reap(child) && start[30 * PAGE] == 30, "memory of a child");
	TRY(mprotect(start + 64 * PAGE, 3 * PAGE, PROT_READ) == 0 && start[33 * PAGE] == 33,
	    "a part of large pages");
	return munmap(memory, 3 * large + 5 * PAGE) == 0;
}

#define SETTINGS "/sys/kernel/mm/transparent_hugepage/"

/* Folios between the two page sizes, where the kernel has them and the machine is ours. */
static bool middle_pages(void)
{
	static const char *const sizes[] = {"32kB", "128kB"};
	char name[100];

	if (!in_guest())
		return true;
	for (size_t i = 0; i < COUNT(sizes); i++) {
		snprintf(name, sizeof(name), SETTINGS "hugepages-%s/enabled", sizes[i]);
		if (!put_setting(name, "madvise"))
			return without("pages-between");
		unsigned char *memory = map_private(331 * PAGE);
		if (memory == NULL)
			return false;
		madvise(memory, 331 * PAGE, MADV_HUGEPAGE);
		touch(memory, 331, 0, 5);
		TRY(memory[330 * PAGE + 330 * 72 % PAGE] == 5, "memory in larger pages");
		touch(memory, 331, 2, 6);
		TRY(munmap(memory, 331 * PAGE) == 0 && put_setting(name, "never"), "larger pages");
	}
	return true;
}

/* Pages of the pool of a size, which is filled for this and emptied again. */
static bool pool_pages(unsigned shift, size_t pages)
{
	const size_t page = (size_t)1 << shift;
	char pool[80];
	char count[24];

	if (!in_guest())
		return true;
	snprintf(pool, sizeof(pool), "/sys/kernel/mm/hugepages/hugepages-%zukB/nr_hugepages",
		 page / 1024);
	snprintf(count, sizeof(count), "%zu", pages);
	if (!put_setting(pool, count))
		/* Every processor with larger pages has those of 2 MiB. */
		return (errno == ENOENT && page != 2 * MIB) || lacks("CONFIG_HUGETLBFS");
	unsigned char *memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB |
					     (int)(shift << MAP_HUGE_SHIFT), -1, 0);
	/* Memory may be too scattered for it. */
	if (memory != MAP_FAILED) {
		for (size_t i = pages; i-- > 0;)
			memory[i * page + page / 2] = (unsigned char)i;
		TRY(memory[page / 2] == 0 && memory[page + page / 2] == 1 &&
			    munmap(memory, pages * page) == 0,
		    "pages of a pool");
	}
	return put_setting(pool, "0") || fault("empty a pool");
}

/* A file's pages: mapped to read, to write privately and to write for all. */
static bool of_files(unsigned round)
{
	const size_t pages = 57 + round % 9;
	static unsigned char data[70 * LARGEST_PAGE];
	static unsigned char read_back[70 * LARGEST_PAGE];
	char name[16];
	const int fd = open("mapped", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	pattern(data, pages * PAGE, round);
	TRY(fd >= 0 && write_all(fd, data, pages * PAGE - 100), "write a file");
	const unsigned char *text = map(pages * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	unsigned char *own = map(pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	unsigned char *shared = map(30 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 10 * PAGE);
	TRY(text != NULL && own != NULL && shared != NULL, "map a file");
	unsigned sum = 0;
	for (size_t i = 0; i < pages; i++)
		sum += text[(i * 5 % pages) * PAGE + 11];
	TRY(sum > 0 && same(text, data, 1000), "a mapped file");
	for (size_t i = 0; i < pages; i += 3)
		own[i * PAGE] = 0xee;
	for (size_t i = 1; i < 30; i += 2)
		shared[i * PAGE + 9] = (unsigned char)(i + 100);
	TRY(text[12 * PAGE] == data[12 * PAGE] && own[12 * PAGE] == 0xee, "a private page of a file");
	TRY(msync(shared, 30 * PAGE, round % 2 ? MS_SYNC : MS_ASYNC) == 0, "msync");
	TRY(pread(fd, read_back, 30 * PAGE, 10 * PAGE) == (ssize_t)(30 * PAGE), "pread");
	TRY(read_back[3 * PAGE + 9] == 103 && read_back[2 * PAGE + 9] == data[12 * PAGE + 9],
	    "what was written to a shared mapping");
	/* A file that shrinks takes its pages out of the mappings. */
	TRY(ftruncate(fd, (off_t)(25 * PAGE)) == 0 && shared[PAGE + 9] == 101, "a shorter file");
	TRY(munmap((void *)text, pages * PAGE) == 0 && munmap(own, pages * PAGE) == 0 &&
		    munmap(shared, 30 * PAGE) == 0,
	    "munmap");
	close(fd);
	TRY(unlink("mapped") == 0, "unlink");
	snprintf(name, sizeof(name), "area%u", round);
	const int area = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (area < 0)
		return lacks("CONFIG_MEMFD_CREATE");
	TRY(ftruncate(area, 100 * PAGE) == 0, "ftruncate");
	unsigned char *memory = map(100 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, area, 0);
	if (memory == NULL)
		return false;
	touch(memory, 100, round, 4);
	TRY(munmap(memory, 100 * PAGE) == 0 &&
		    fallocate(area, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 5 * PAGE, 50 * PAGE) == 0,
	    "a hole in memory");
	TRY(fcntl(area, F_ADD_SEALS, F_SEAL_SHRINK) == 0 && ftruncate(area, 0) == -1, "a seal");
	return close(area) == 0;
}

/* Memory that processes share, and memory that they part with by writing. */
static bool between_processes(unsigned round)
{
	const size_t pages = 90 + 3 * (round % 5);
	unsigned char *shared =
		map(pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned char *own = map_private(pages * PAGE);

	if (shared == NULL || own == NULL)
		return false;
	touch(own, pages, 0, 1);
	touch(shared, pages / 2, 0, 1);
	const pid_t child = fork_child();
	if (child == 0) {
		touch(own, pages, 1, 2);
		touch(shared, pages, 2, 7);
		const pid_t inner = fork_child();
		if (inner == 0) {
			touch(own, pages / 3, 3, 3);
			leave(shared[0] == 7);
		}
		leave(inner > 0 && reap(inner) && own[0] == 2);
	}
	/* The parent writes some of them first or later: both ways of parting. */
	touch(own, pages / 4, 2, 5);
	TRY(child > 0 && reap(child), "a process that shares memory");
	TRY(shared[(pages - 1) * PAGE + ((pages - 1) * 72) % PAGE] == 7 || pages % 13 == 0,
	    "shared memory");
	TRY(own[(pages / 2) * PAGE + (pages / 2 * 72) % PAGE] == 1, "memory that is not shared");
	return munmap(shared, pages * PAGE) == 0 && munmap(own, pages * PAGE) == 0;
}

/* A stack that grows page by page. */
static unsigned deep(unsigned levels)
{
	volatile unsigned char frame[3000];

	frame[0] = (unsigned char)levels;
	return levels == 0 ? frame[0] : frame[0] + deep(levels - 1);
}

bool faults(unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++) {
		if (!anonymous(round) || !larger_pages(round % 2 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) ||
		    !middle_pages() || !of_files(round) || !between_processes(round) ||
		    !pool_pages(16, 31) || !pool_pages(21, 3))
			return false;
		const pid_t child = fork_child();
		if (child == 0)
			leave(deep(200) > 0);
		TRY(child > 0 && reap(child), "a deep stack");
	}
	return true;
}
