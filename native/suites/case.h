/* Shared by the programs of all suites: cases, marks, result lines and checks. */
#ifndef MEPOF_SUITES_CASE_H
#define MEPOF_SUITES_CASE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * One case of a suite. `run` prepares, warms up, does its work between measure_begin and
 * measure_end, and checks the results; it returns false on an error, after calling fault().
 */
struct suite_case {
	const char *name;
	/* Operations of the measured interval; --scale divides them. */
	unsigned long operations;
	/* Bytes of a message, a buffer or a page; or another parameter, by suite. */
	size_t size;
	unsigned concurrency;
	bool (*run)(const struct suite_case *is, unsigned long operations);
};

/* Each suite's program has a name. All except one, which has a main() of its own, have a table. */
extern const char suite_name[];
extern const struct suite_case suite_cases[];
extern const size_t suite_case_count;

/*
 * Let the kernel finish what the previous program left it: workers of the kernel and RCU have to
 * dispose of a network namespace or a process. An idle guest does that for free.
 */
void settle(void);

/* Begin a case; end it with its result line, and return the program's exit status. */
void case_begin(const char *name, unsigned long operations);
int case_end(bool sound);

/* Every case that runs has exactly one pair of these. */
void measure_begin(void);
void measure_end(void);

/*
 * The interval of a case whose work is done by other threads or processes: each of them prepares,
 * calls gate_begin, works, calls gate_end, and cleans up. measure_gate is the pair above around the
 * time between those two.
 */
struct gate {
	pthread_barrier_t barrier;
};

/* For so many workers; `across` if they are processes, with the gate in shared memory. */
void gate_init(struct gate *gate, unsigned workers, bool across);
void gate_begin(struct gate *gate);
void gate_end(struct gate *gate);
void measure_gate(struct gate *gate);

uint64_t now_ns(void);

/* Reserve memory for the latencies of so many operations; then call latency_note once for each. */
bool latencies_expect(unsigned long operations);
void latency_note(uint64_t nanoseconds);

/* Bytes that the measured interval moved, if the case moves any. */
void moved_bytes(uint64_t bytes);

/* Total number of operations, when several processes did them. */
void operations_done(unsigned long operations);

/*
 * Record an error and report the first one on standard error; always false, so that a check reads
 * `return fault("close")`.
 */
bool fault(const char *what);

/*
 * End the program with status 77 because this kernel or guest does not have what the case needs.
 * `needs` is one word, such as CONFIG_VETH.
 */
_Noreturn void unsupported(const char *needs);

/* End a child process: with status 0 if everything was right there. */
_Noreturn void leave(bool sound);

/* Like fork, but the child ends with this process, however this process ends. */
pid_t fork_child(void);

/* Wait until a child has counted that far; false after fault() if it ends earlier. */
bool await_child(pid_t pid, const _Atomic unsigned *word, unsigned count);

/* Wait for a child that must end with status 0; end_child() kills it first. */
bool reap(pid_t pid);
bool end_child(pid_t pid);

/* Write or read the whole of a buffer; false on an error or an early end. */
bool write_all(int fd, const void *data, size_t size);
bool read_all(int fd, void *data, size_t size);

/* Fill a buffer with bytes that differ by position and seed. */
void pattern(void *data, size_t size, unsigned seed);

/* Zeroed memory that children share. Never NULL: ends the program if there is none. */
void *shared_memory(size_t size);

/* FNV-1a hash of some bytes, for known results. */
uint64_t checksum(const void *data, size_t size);

/*
 * Deliberate damage for testing the checks: true if the environment variable SUITE_DAMAGE is set.
 * Every case checks it at least once.
 */
bool damaged(void);

#endif
