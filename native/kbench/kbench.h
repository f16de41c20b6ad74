/* What the parts of kbench share: cases, mixes, checks. */
#ifndef KBENCH_H
#define KBENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One benchmark. `prepare` and `finish` run outside the marks; `run` is what is measured.
 * Each returns false when something that the kernel gave back is wrong; `run` reports the
 * first such thing through `fault`.
 */
struct bench {
	const char *name;
	const char *metric;
	const char *unit;
	/* Sized for 10 to 25 million kernel instructions on a small kernel. */
	unsigned long operations;
	/* Sizes in bytes; zero where the case moves no data. */
	size_t file;
	size_t buffer;
	bool (*prepare)(const struct bench *bench);
	bool (*run)(const struct bench *bench, unsigned long operations);
	void (*finish)(void);
	/* Bytes that one operation moves, for the report. */
	uint64_t (*bytes)(const struct bench *bench);
};

extern const struct bench benches[];
extern const size_t bench_count;

const struct bench *bench_find(const char *name);

/* Bounded work that trains what the cases do not reach; false if a check failed. */
bool mix_run(const char *name, unsigned long operations, bool *known);
void mix_list(void);

/* The quick look at the kernel's health; names what failed on standard output. */
bool selfcheck(void);

/*
 * Remember and report (on standard error, once) what went wrong; always false, so that a
 * check reads `return fault("close")`.
 */
bool fault(const char *what);

/* Write or read the whole of a buffer; false on an error or a short transfer. */
bool write_all(int fd, const void *data, size_t size);
bool read_all(int fd, void *data, size_t size);

/* Fill a buffer with bytes that differ by position and seed. */
void pattern(unsigned char *data, size_t size, unsigned seed);

/* Wait for a child; true if it exited with that status. */
bool reap(int pid, int status);

/*
 * Deliberate damage for testing the checks: true in the one place that the environment
 * variable KBENCH_DAMAGE names.
 */
bool damaged(const char *place);

#endif
