/*
 * unixbench: loads like those of UnixBench, each once alone (`-1`) and in as many copies as
 * there are processors (`-n`).
 */
#define _GNU_SOURCE
#include "unixbench.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const char suite_name[] = "unixbench";

struct shared {
	pthread_barrier_t gate;
};

/* All copies stand at the gate until all are there, so that preparing is not measured. */
static void wait_at(struct shared *shared)
{
	pthread_barrier_wait(&shared->gate);
}

static _Noreturn void be_copy(const struct suite_case *is, const struct load *load,
			      unsigned long operations, struct shared *shared)
{
	const unsigned long warm = operations / 10 + 1;
	bool sound = load->prepare(is) && load->work(is, warm);

	wait_at(shared);
	wait_at(shared);
	sound = sound && load->work(is, operations);
	wait_at(shared);
	leave(sound && load->finish(is, warm + operations));
}

static bool measure(const struct suite_case *is, unsigned long operations, const struct load *load)
{
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	const unsigned copies = is->concurrency == 1 || processors < 1 ? 1 : (unsigned)processors;
	struct shared *shared = shared_memory(sizeof(*shared));
	pthread_barrierattr_t across;
	char directory[] = "unixbench-XXXXXX";
	char place[sizeof(directory) + 12];
	bool sound = true;

	if (mkdtemp(directory) == NULL)
		return fault("make a directory");
	pthread_barrierattr_init(&across);
	pthread_barrierattr_setpshared(&across, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->gate, &across, copies + 1);
	pid_t *children = calloc(copies, sizeof(*children));
	if (children == NULL)
		return fault("memory for copies");
	for (unsigned i = 0; i < copies; i++) {
		snprintf(place, sizeof(place), "%s/%u", directory, i);
		if (mkdir(place, 0755) != 0)
			return fault("make a directory");
		children[i] = fork();
		if (children[i] < 0)
			return fault("fork");
		if (children[i] == 0) {
			if (chdir(place) != 0)
				fault("enter a directory");
			be_copy(is, load, operations, shared);
		}
	}
	operations_done(operations * copies);
	wait_at(shared);
	measure_begin();
	wait_at(shared);
	wait_at(shared);
	measure_end();
	for (unsigned i = 0; i < copies; i++) {
		sound = reap(children[i]) && sound;
		snprintf(place, sizeof(place), "%s/%u", directory, i);
		rmdir(place);
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
