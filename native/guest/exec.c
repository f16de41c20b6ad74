/* Runs programs for the host: with a limit and captured output, or on the console. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"

#define CHUNK 65536

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint32_t exit_status(int status)
{
	return WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 128u + (uint32_t)WTERMSIG(status);
}

/* Keep the first OUTPUT_LIMIT bytes and discard the rest; false at the end of file. */
static bool take_output(int fd, struct bytes *output, size_t start, bool *truncated)
{
	static char chunk[CHUNK];
	const ssize_t got = read(fd, chunk, sizeof(chunk));

	if (got < 0)
		return errno == EINTR;
	const size_t left = OUTPUT_LIMIT - (output->size - start);
	size_t keep = (size_t)got;
	if (keep > left) {
		keep = left;
		*truncated = true;
	}
	memcpy(bytes_grow(output, keep), chunk, keep);
	output->size += keep;
	return got > 0;
}

/* In the child: become the program, or report errno through `report`. */
static _Noreturn void become(char **argv, int output, int report, const sigset_t *signals)
{
	setpgid(0, 0);
	sigprocmask(SIG_SETMASK, signals, NULL);
	const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	execvp(argv[0], argv);
	const int error = errno;
	if (write(report, &error, sizeof(error)) != sizeof(error))
		_exit(126);
	_exit(127);
}

/*
 * Take output until the child ends or the limit passes; returns whether it ended by itself. The end
 * of the child counts, not the end of its output: a grandchild may keep the pipe open for ever.
 */
static bool watch(pid_t pid, int output_fd, int signal_fd, uint64_t deadline, struct bytes *output,
		  bool *truncated, int *status)
{
	const size_t start = output->size;
	struct pollfd poller[2] = {{.fd = signal_fd, .events = POLLIN}, {.fd = output_fd, .events = POLLIN}};
	struct signalfd_siginfo info;
	bool ended = false;

	for (;;) {
		int wait_ms = -1;
		if (ended) {
			wait_ms = 0;
		} else if (deadline != 0) {
			const uint64_t now = now_ns();
			if (now >= deadline)
				return false;
			wait_ms = (int)((deadline - now) / 1000000u + 1);
		}
		const int ready = poll(poller, 2, wait_ms);
		if (ended && (ready == 0 || poller[1].revents == 0))
			return true;
		if (ready <= 0)
			continue;
		if (poller[1].revents != 0 && !take_output(output_fd, output, start, truncated))
			poller[1].fd = -1;
		/* Other children of init end too: reap them in passing. */
		if (poller[0].revents != 0 && read(signal_fd, &info, sizeof(info)) > 0) {
			int some;
			for (pid_t gone; (gone = waitpid(-1, &some, WNOHANG)) > 0;) {
				if (gone == pid) {
					*status = some;
					ended = true;
				}
			}
		}
		/* The child has ended: take only what is already in the pipe. */
		if (ended && poller[1].fd < 0)
			return true;
	}
}

static void append_text(struct bytes *output, const char *text)
{
	const size_t size = strlen(text);

	memcpy(bytes_grow(output, size), text, size);
	output->size += size;
}

struct outcome run_program(char **argv, uint32_t limit_ms, struct bytes *output)
{
	struct outcome outcome = {.status = STATUS_NOT_STARTED};
	int ends[2];
	int report[2];
	sigset_t child_signal;
	sigset_t before;

	if (pipe2(ends, O_CLOEXEC) != 0 || pipe2(report, O_CLOEXEC) != 0)
		fail("cannot make a pipe");
	sigemptyset(&child_signal);
	sigaddset(&child_signal, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child_signal, &before);
	const int signal_fd = signalfd(-1, &child_signal, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0)
		fail("cannot watch for the end of programs (the kernel needs CONFIG_SIGNALFD)");

	const uint64_t begin = now_ns();
	const pid_t pid = fork();
	if (pid == 0)
		become(argv, ends[1], report[1], &before);
	close(ends[1]);
	close(report[1]);
	int error = pid < 0 ? errno : 0;
	/* A successful exec closes it, so this never waits long. */
	if (pid > 0 && read(report[0], &error, sizeof(error)) == sizeof(error))
		waitpid(pid, NULL, 0);
	if (error != 0) {
		append_text(output, "cannot run ");
		append_text(output, argv[0]);
		append_text(output, ": ");
		append_text(output, strerror(error));
	} else {
		int status = 0;
		const uint64_t deadline = limit_ms ? begin + limit_ms * 1000000ull : 0;
		if (watch(pid, ends[0], signal_fd, deadline, output, &outcome.truncated, &status)) {
			outcome.status = exit_status(status);
		} else {
			/* The parent does it too: the child may not have reached its own call. */
			setpgid(pid, pid);
			kill(-pid, SIGKILL);
			waitpid(pid, &status, 0);
			outcome.status = STATUS_TIMED_OUT;
		}
	}
	outcome.elapsed_ns = now_ns() - begin;
	close(ends[0]);
	close(report[0]);
	close(signal_fd);
	sigprocmask(SIG_SETMASK, &before, NULL);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	return outcome;
}

/* The console's own device, because /dev/console cannot be a controlling terminal. */
static int open_console(void)
{
	char active[256] = "";
	char path[272];
	FILE *file = fopen("/sys/class/tty/console/active", "re");

	if (file != NULL) {
		if (fgets(active, sizeof(active), file) == NULL)
			active[0] = '\0';
		fclose(file);
	}
	/* Of several names, the last is the one that /dev/console writes to. */
	active[strcspn(active, "\n")] = '\0';
	const char *last = strrchr(active, ' ');
	last = last ? last + 1 : active;
	snprintf(path, sizeof(path), "/dev/%s", *last ? last : "ttyS0");
	return open(path, O_RDWR | O_NOCTTY);
}

uint32_t run_shell(void)
{
	int status;
	const pid_t pid = fork();

	if (pid < 0)
		return STATUS_NOT_STARTED;
	if (pid == 0) {
		setsid();
		const int tty = open_console();
		if (tty < 0)
			_exit(126);
		ioctl(tty, TIOCSCTTY, 1);
		for (int fd = 0; fd < 3; fd++)
			dup2(tty, fd);
		if (tty > 2)
			close(tty);
		setenv("PS1", "guest:\\w# ", 1);
		execl("/bin/busybox", "sh", "-i", (char *)NULL);
		_exit(127);
	}
	for (;;) {
		const pid_t gone = waitpid(-1, &status, 0);
		if (gone == pid)
			return exit_status(status);
		if (gone < 0 && errno != EINTR)
			return STATUS_NOT_STARTED;
	}
}
