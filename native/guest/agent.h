/* Between the agent's protocol (agent.c) and its running of programs (exec.c). */
#ifndef AGENT_H
#define AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent_protocol.h"

/* A growing run of bytes. */
struct bytes {
	char *data;
	size_t size;
	size_t room;
};

/* Make room for `more` bytes at the end; ends the agent when memory is short. */
char *bytes_grow(struct bytes *bytes, size_t more);

struct outcome {
	/* Exit code, 128 + signal, or one of the two above. */
	uint32_t status;
	uint64_t elapsed_ns;
	bool truncated;
};

/*
 * Run a program to its end or to the limit (milliseconds; 0: none), in a process group of
 * its own that is killed at the limit. Its merged output is appended to `output`.
 */
struct outcome run_program(char **argv, uint32_t limit_ms, struct bytes *output);

/* Give the console to an interactive shell until the user leaves it; its exit status. */
uint32_t run_shell(void);

/* Say why on the console, and end: power off as init, exit otherwise. */
_Noreturn void fail(const char *what);

#endif
