/*
 * Commands of a described app. A command's file is a sequence of fields, each a letter, a value and
 * a NUL byte; src/mepof/app/launch.py writes it:
 *
 *   a ARGUMENT   of the program, in order
 *   e NAME=VALUE of the environment
 *   d PATH       working directory
 *   i PATH       standard input
 *   u UID, g GID user and group
 *   n NAME       of both, if the guest does not know the numbers
 *   P            it is the first process of a PID namespace of its own, as in a container
 *   S            it is a service: it goes on while other commands run
 *   p PORT, o TEXT, r ARGUMENT   when the service is ready: a TCP port of 127.0.0.1 or ::1
 *                answers, its output contains the text, a program ends with status 0
 *   k SIGNAL     that stops the service
 *   t MS         limit of becoming ready and of stopping; of an action that is measured
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch.h"

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (memory == NULL)
		fail("not enough memory", "for a command");
	return memory;
}

/* The whole file, with one more NUL byte. */
static char *content_of(const char *path, size_t *size)
{
	struct stat status;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &status) != 0)
		fail("cannot read", path);
	*size = (size_t)status.st_size;
	char *data = allocate(*size + 1, 1);
	for (size_t done = 0; done < *size;) {
		const ssize_t got = read(fd, data + done, *size - done);
		if (got <= 0)
			fail("cannot read", path);
		done += (size_t)got;
	}
	close(fd);
	return data;
}

struct command command_read(const char *kind, const char *name)
{
	char path[PATH_MAX];
	size_t size;
	size_t fields = 1;

	snprintf(path, sizeof(path), "%s/%s/%s", root, kind, name);
	char *data = content_of(path, &size);
	for (size_t at = 0; at < size; at++)
		fields += data[at] == '\0';
	struct command command = {.limit_ms = 60000, .signal = SIGTERM};
	char **argument = command.argv = allocate(fields, sizeof(char *));
	char **ready = command.ready_argv = allocate(fields, sizeof(char *));
	char **variable = command.environment = allocate(fields, sizeof(char *));
	for (char *at = data; at < data + size; at += strlen(at) + 1) {
		char *value = at + 1;
		switch (*at) {
		case 'a':
			*argument++ = value;
			break;
		case 'r':
			*ready++ = value;
			break;
		case 'e':
			*variable++ = value;
			break;
		case 'd':
			command.directory = value;
			break;
		case 'i':
			command.input = value;
			break;
		case 'o':
			command.ready_output = value;
			break;
		case 'u':
			command.user = (uid_t)strtoul(value, NULL, 10);
			break;
		case 'g':
			command.group = (gid_t)strtoul(value, NULL, 10);
			break;
		case 'n':
			command.account = value;
			break;
		case 'p':
			command.ready_port = (int)strtol(value, NULL, 10);
			break;
		case 'k':
			command.signal = (int)strtol(value, NULL, 10);
			break;
		case 't':
			command.limit_ms = strtol(value, NULL, 10);
			break;
		case 'P':
			command.is_first = true;
			break;
		case 'S':
			command.service = true;
			break;
		default:
			fail("unknown field in", path);
		}
	}
	if (command.argv[0] == NULL)
		fail("no program in", path);
	if (command.is_first && access("/proc/self/ns/pid", F_OK) != 0) {
		errno = 0;
		fail("the kernel has no PID namespaces (`set config slim+init`), which are needed by",
		     command.argv[0]);
	}
	return command;
}

/* Add a line to passwd(5) or group(5), unless the number, the third field, is there already. */
static void make_known(const char *table, unsigned int number, const char *line)
{
	char path[PATH_MAX];
	char *known = NULL;
	size_t size = 0;
	bool ends = true;

	snprintf(path, sizeof(path), "%s/../etc/%s", root, table);
	FILE *file = fopen(path, "r+e");
	if (file == NULL)
		return;
	for (ssize_t length; (length = getline(&known, &size, file)) > 0;) {
		const char *second = strchr(known, ':');
		const char *third = second ? strchr(second + 1, ':') : NULL;
		if (third != NULL && strtoul(third + 1, NULL, 10) == number) {
			fclose(file);
			return;
		}
		ends = known[length - 1] == '\n';
	}
	fseek(file, 0, SEEK_END);
	fprintf(file, "%s%s\n", ends ? "" : "\n", line);
	fclose(file);
}

/* Programs look up their own user, and some refuse to start without an entry. */
static void make_account(const struct command *command)
{
	char line[128];

	snprintf(line, sizeof(line), "%s:x:%u:%u::/tmp:/bin/sh", command->account, command->user,
		 command->group);
	make_known("passwd", command->user, line);
	snprintf(line, sizeof(line), "%s:x:%u:", command->account, command->group);
	make_known("group", command->group, line);
}

/* The processes of the namespace in /proc, and the image's own /init in place of the guest's. */
static bool prepare_namespace(void)
{
	char own[PATH_MAX];
	char init[PATH_MAX];

	snprintf(own, sizeof(own), "%s/init", root);
	snprintf(init, sizeof(init), "%s/../init", root);
	return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 &&
	       mount("proc", "/proc", "proc", 0, NULL) == 0 &&
	       (access(own, F_OK) != 0 || mount(own, init, NULL, MS_BIND, NULL) == 0);
}

pid_t command_fork(const struct command *command)
{
	if (command->is_first && unshare(CLONE_NEWPID) != 0)
		return -1;
	const pid_t pid = fork();
	if (pid == 0 && command->is_first && !prepare_namespace())
		fail("cannot make a namespace for", command->argv[0]);
	return pid;
}

_Noreturn void command_become(const struct command *command, char **argv)
{
	for (char **variable = command->environment; *variable != NULL; variable++)
		if (putenv(*variable) != 0)
			fail("cannot set", *variable);
	if (command->directory != NULL && chdir(command->directory) != 0)
		fail("cannot enter", command->directory);
	if (command->input != NULL) {
		const int fd = open(command->input, O_RDONLY);
		if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
			fail("cannot read", command->input);
		if (fd != STDIN_FILENO)
			close(fd);
	}
	if (command->account != NULL)
		make_account(command);
	if (command->user != 0 || command->group != 0) {
		/* So that it can open /dev/stdout and /dev/stderr, as in a container. */
		for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
			if (fchown(fd, command->user, (gid_t)-1) != 0)
				continue; /* somebody else's file; it can still write to it */
		if (setgroups(0, NULL) != 0 || setgid(command->group) != 0 || setuid(command->user) != 0)
			fail("cannot become the user of", argv[0]);
	}
	/* Whoever waits for it may be killed in its stead. */
	if (command->is_first)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	execvp(argv[0], argv);
	fail("cannot run", argv[0]);
}
