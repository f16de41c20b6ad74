/* Between the agent's protocol (agent.c) and its execution of programs (exec.c). */
#ifndef AGENT_H
#define AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent_protocol.h"

/* A growing sequence of bytes. */
struct bytes {
	char *data;
	size_t size;
	size_t capacity;
};

/* Reserve `more` bytes at the end; ends the agent when memory is short. */
char *bytes_grow(struct bytes *bytes, size_t more);

struct outcome {
	/* Exit code, 128 + signal, STATUS_TIMED_OUT or STATUS_NOT_STARTED. */
	uint32_t status;
	uint64_t elapsed_ns;
	bool truncated;
};

/*
 * Run a program to its end or to the limit (milliseconds; 0: none), in a process group of its own,
 * which is killed at the limit. Its merged output is appended to `output`.
 */
struct outcome run_program(char **argv, uint32_t limit_ms, struct bytes *output);

/* Give the console to an interactive shell until the user leaves it; returns its exit status. */
uint32_t run_shell(void);

/* Print the reason on the console and end: power off as init, exit otherwise. */
_Noreturn void fail(const char *what);

#endif
