/*
 * Starts what a described app runs in the guest: `launch action NAME`, `launch measure NAME`, which
 * marks the interval of an action, `launch setup NAME` and `launch stop NAME`. What to start, as
 * which user and where, is in files that lie beside it (command.c has their format). LAUNCH_ROOT
 * names another directory than /mepof; the tests use that.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"

const char *root = "/mepof";

_Noreturn void fail(const char *what, const char *which)
{
	fflush(stdout);
	if (errno)
		fprintf(stderr, "%s %s: %s\n", what, which, strerror(errno));
	else
		fprintf(stderr, "%s %s\n", what, which);
	_exit(127);
}

/* What C libraries and programs expect of a machine beyond devtmpfs. */
static void complete_dev(void)
{
	if (access("/dev/fd", F_OK) == 0)
		return;
	if (symlink("/proc/self/fd", "/dev/fd") != 0)
		return;
	(void)!symlink("/proc/self/fd/0", "/dev/stdin");
	(void)!symlink("/proc/self/fd/1", "/dev/stdout");
	(void)!symlink("/proc/self/fd/2", "/dev/stderr");
	mkdir("/dev/shm", 01777);
	mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777");
	mkdir("/dev/pts", 0755);
	mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=0666,mode=0620");
	/* Programs look up their machine's own name, which /etc/hosts should have. */
	struct utsname machine;
	if (uname(&machine) == 0 && strcmp(machine.nodename, "(none)") == 0)
		(void)!sethostname("localhost", strlen("localhost"));
}

/* Returns the status as a shell has it. */
static int run_to_end(const struct command *command)
{
	int status;
	const pid_t pid = command_fork(command);

	if (pid < 0)
		fail("cannot start", command->argv[0]);
	if (pid == 0)
		command_become(command, command->argv);
	while (waitpid(pid, &status, 0) != pid)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A command of the setup that runs to its end. The mark stays if it fails, or is killed. */
static int run_setup(const char *name, const struct command *command)
{
	state_write(state_path(name, ".failed"), name);
	const int status = run_to_end(command);
	if (status == 0)
		unlink(state_path(name, ".failed"));
	return status;
}

int main(int argc, char **argv)
{
	const char *other = getenv("LAUNCH_ROOT");

	if (other != NULL)
		root = other;
	if (argc != 3) {
		fputs("usage: launch action|measure|setup|stop NAME\n", stderr);
		return 2;
	}
	/* The first process ignores it, and programs would inherit that. */
	signal(SIGPIPE, SIG_DFL);
	umask(022);
	if (other == NULL)
		complete_dev();
	errno = 0;
	const bool measured = strcmp(argv[1], "measure") == 0;
	if (measured || strcmp(argv[1], "action") == 0) {
		const struct command command = command_read("actions", argv[2]);
		if (setup_is_broken())
			return 125;
		if (measured)
			return measure_action(argv[2], &command);
		if (command.is_first)
			return run_to_end(&command);
		command_become(&command, command.argv);
	}
	const struct command command = command_read("setup", argv[2]);
	if (strcmp(argv[1], "stop") == 0)
		return service_stop(argv[2], &command);
	if (setup_is_broken())
		return 125;
	return command.service ? service_start(argv[2], &command) : run_setup(argv[2], &command);
}
