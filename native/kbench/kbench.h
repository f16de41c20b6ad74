/* Shared by the parts of kbench: cases, mixes, checks. */
#ifndef KBENCH_H
#define KBENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One benchmark. `prepare` and `finish` run outside the marks; `run` is measured. Each returns
 * false if the kernel returned something wrong; `run` reports the first error through `fault`.
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

/* Bounded work that exercises what the cases do not reach; false if a check failed. */
bool mix_run(const char *name, unsigned long operations, bool *known);
void mix_list(void);

/* A quick check of the kernel's health; prints the name of the check that failed. */
bool selfcheck(void);

/*
 * Record an error and report the first one on standard error; always false, so that a check reads
 * `return fault("close")`.
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
 * Deliberate damage for testing the checks: true for the name in the environment variable
 * KBENCH_DAMAGE.
 */
bool damaged(const char *name);

#endif
