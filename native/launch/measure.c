/* Actions as cases of a measurement: marks around one, and a result line before what it wrote. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"
#include "marks.h"

/* Far more than the kernel's workers need to dispose of what the action before left. */
#define SETTLE_MS 500

static pid_t child;
static volatile sig_atomic_t is_late;

static void end_child(int number)
{
	(void)number;
	is_late = 1;
	if (child > 0)
		kill(child, SIGKILL);
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* A file, so that nobody has to read while the action runs. */
static void copy_output(int from)
{
	char buffer[1 << 16];
	ssize_t got;

	lseek(from, 0, SEEK_SET);
	while ((got = read(from, buffer, sizeof(buffer))) > 0)
		for (ssize_t at = 0; at < got;) {
			const ssize_t put = write(STDOUT_FILENO, buffer + at, (size_t)(got - at));
			if (put <= 0)
				return;
			at += put;
		}
}

int measure_action(const char *name, const struct command *command)
{
	int status;
	FILE *output = tmpfile();

	if (output == NULL)
		fail("cannot make a file for the output of", name);
	usleep(SETTLE_MS * 1000);
	signal(SIGALRM, end_child);
	const struct itimerval limit = {
		.it_value = {command->limit_ms / 1000, command->limit_ms % 1000 * 1000},
	};
	setitimer(ITIMER_REAL, &limit, NULL);
	const uint64_t began = now_ns();
	mepof_mark_start();
	child = command_fork(command);
	if (child < 0)
		fail("cannot start", command->argv[0]);
	if (child == 0) {
		dup2(fileno(output), STDOUT_FILENO);
		dup2(fileno(output), STDERR_FILENO);
		fclose(output);
		command_become(command, command->argv);
	}
	while (waitpid(child, &status, 0) != child)
		;
	mepof_mark_stop();
	if (is_late) {
		copy_output(fileno(output));
		pause(); /* the agent's own limit, which comes next, says that it was late */
	}
	/* What it wrote is judged outside of the guest, and so is its status. */
	printf("case=%s operations=1 elapsed_ns=%" PRIu64 " check=ok\n", name, now_ns() - began);
	fflush(stdout);
	copy_output(fileno(output));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
