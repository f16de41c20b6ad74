/*
 * unixbench: loads like those of UnixBench, each once alone (`-1`) and once in as many copies as
 * there are processors (`-n`).
 */
#define _GNU_SOURCE
#include "unixbench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const char suite_name[] = "unixbench";

static _Noreturn void be_copy(const struct suite_case *is, const struct load *load,
			      const char *path, unsigned long operations, struct gate *gate)
{
	const unsigned long warm = operations / 10 + 1;
	/* A copy that failed still meets the others, because they would wait for it. */
	bool sound = (chdir(path) == 0 || fault("enter a directory")) && load->prepare(is) &&
		     load->work(is, warm);

	gate_begin(gate);
	sound = sound && load->work(is, operations);
	gate_end(gate);
	leave(sound && load->finish(is, warm + operations));
}

static bool measure(const struct suite_case *is, unsigned long operations, const struct load *load)
{
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	const unsigned copies = is->concurrency == 1 || processors < 1 ? 1 : (unsigned)processors;
	struct gate *gate = shared_memory(sizeof(*gate));
	char directory[] = "unixbench-XXXXXX";
	char path[sizeof(directory) + 12];
	bool sound = true;

	if (mkdtemp(directory) == NULL)
		return fault("make a directory");
	gate_init(gate, copies, true);
	pid_t *children = calloc(copies, sizeof(*children));
	if (children == NULL)
		return fault("memory for copies");
	for (unsigned i = 0; i < copies; i++) {
		snprintf(path, sizeof(path), "%s/%u", directory, i);
		if (mkdir(path, 0755) != 0)
			return fault("make a directory");
		children[i] = fork_child();
		if (children[i] < 0)
			return false;
		if (children[i] == 0)
			be_copy(is, load, path, operations, gate);
	}
	operations_done(operations * copies);
	measure_gate(gate);
	for (unsigned i = 0; i < copies; i++) {
		sound = reap(children[i]) && sound;
		snprintf(path, sizeof(path), "%s/%u", directory, i);
		rmdir(path);
	}
	free(children);
	rmdir(directory);
	return sound;
}

#define RUN(load)                                                                     \
	static bool run_##load(const struct suite_case *is, unsigned long operations)     \
	{                                                                                 \
		return measure(is, operations, &load_##load);                                 \
	}

RUN(syscall)
RUN(pipe)
RUN(context)
RUN(spawn)
RUN(execl)
RUN(copy)
RUN(dhry)
RUN(whet)

static bool run_shell(const struct suite_case *is, unsigned long operations)
{
	if (access("/bin/busybox", X_OK) != 0)
		unsupported("/bin/busybox");
	return measure(is, operations, &load_shell);
}

/* Concurrency 0: a copy for each processor. */
#define BOTH(name, operations, size, run)                     \
	{name "-1", (operations), (size), 1, run}, {              \
		name "-n", (operations), (size), 0, run               \
	}

const struct suite_case suite_cases[] = {
	BOTH("syscall", 12000, 0, run_syscall), BOTH("pipe", 8000, 512, run_pipe),
	BOTH("context", 2500, 4, run_context),  BOTH("spawn", 200, 0, run_spawn),
	BOTH("execl", 100, 0, run_execl),       BOTH("copy-256", 6000, 256, run_copy),
	BOTH("copy-1024", 5000, 1024, run_copy), BOTH("copy-4096", 3000, 4096, run_copy),
	BOTH("shell", 4, 0, run_shell),         BOTH("dhry", 60000, 0, run_dhry),
	BOTH("whet", 150, 0, run_whet),
};
const size_t suite_case_count = sizeof(suite_cases) / sizeof(suite_cases[0]);
