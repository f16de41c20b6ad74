/* What the programs of all suites share: their cases, marks, result lines and checks. */
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
 * measure_end, and checks what came out; it returns false when something is wrong, after
 * fault() has said what.
 */
struct suite_case {
	const char *name;
	/* Work of the measured interval; --scale divides it. */
	unsigned long operations;
	/* Bytes of a message, a buffer or a page; what else a case is told, by its suite. */
	size_t size;
	unsigned concurrency;
	bool (*run)(const struct suite_case *is, unsigned long operations);
};

/* Each suite's program has a name; all but one, which has a main() of its own, have a table. */
extern const char suite_name[];
extern const struct suite_case suite_cases[];
extern const size_t suite_case_count;

/*
 * Let the kernel do what the program before has left it: a network namespace or a process is
 * gone for good only when workers of the kernel's and RCU have seen to it. A guest that is
 * idle has that time for nothing.
 */
void settle(void);

/* Begin a case; end it with its result line, and give the program's exit status. */
void case_begin(const char *name, unsigned long operations);
int case_end(bool sound);

/* Exactly one pair of these in every case that runs. */
void measure_begin(void);
void measure_end(void);

/*
 * The interval of a case whose work is done by others, threads or processes: each of them
 * prepares, calls gate_begin, works, calls gate_end, and cleans up. measure_gate is the pair
 * above, with nothing between but what lies between those two.
 */
struct gate {
	pthread_barrier_t barrier;
};

/* For so many workers; `across` where they are processes, and the gate in shared memory. */
void gate_init(struct gate *gate, unsigned workers, bool across);
void gate_begin(struct gate *gate);
void gate_end(struct gate *gate);
void measure_gate(struct gate *gate);

uint64_t now_ns(void);

/* Room for the latencies of some operations; then one call for each of them. */
bool latencies_expect(unsigned long operations);
void latency_note(uint64_t nanoseconds);

/* Bytes that the measured interval moved, if a case moves any. */
void moved_bytes(uint64_t bytes);

/* More than one process did the operations: how many were done altogether. */
void operations_done(unsigned long operations);

/*
 * Remember and report (on standard error, once) what went wrong; always false, so that a
 * check reads `return fault("close")`.
 */
bool fault(const char *what);

/*
 * End the program because this kernel or guest has not what the case needs: `needs` is one
 * word, such as CONFIG_VETH. The exit status is 77.
 */
_Noreturn void unsupported(const char *needs);

/* End a child process: with status 0 if all was right there. */
_Noreturn void leave(bool sound);

/* Like fork, but the child ends with this process, whichever way that does. */
pid_t fork_child(void);

/* Wait until a child has counted that far; false after fault() if it ends before. */
bool await_child(pid_t pid, const _Atomic unsigned *word, unsigned count);

/* Wait for a child that must end with status 0; ends it first where that is asked for. */
bool reap(pid_t pid);
bool end_child(pid_t pid);

/* Write or read the whole of a buffer; false on an error or an early end. */
bool write_all(int fd, const void *data, size_t size);
bool read_all(int fd, void *data, size_t size);

/* Fill a buffer with bytes that differ by position and seed. */
void pattern(void *data, size_t size, unsigned seed);

/* Zeroed memory that children share. Never NULL: ends the program if there is none. */
void *shared_memory(size_t size);

/* A word of hash over some bytes (FNV-1a), for results that must come out. */
uint64_t checksum(const void *data, size_t size);

/*
 * Deliberate damage for testing the checks: true where the environment variable
 * SUITE_DAMAGE is set. Every case asks in one place at least.
 */
bool damaged(void);

#endif
