/*
 * tools: public programs as cases. They do not know marks and result lines, so this program runs
 * them and adds both:
 *
 *   tools CASE OPERATIONS [--scratch] [--server PORT COMMAND…] -- COMMAND…
 *
 * OPERATIONS is the number that the command line makes the tool do. --scratch runs it in a file
 * system on a block device. --server starts another program first, and waits until it listens on a
 * TCP port. A case is sound if the tool's exit status is 0: its checks are its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../case.h"
#include "../scratch.h"

#define TAIL 400

const char suite_name[] = "tools";

/* An unnamed file with the output of the tools. */
static int said;

static pid_t start(char **command)
{
	const pid_t child = fork_child();

	if (child != 0)
		return child;
	dup2(said, STDOUT_FILENO);
	dup2(said, STDERR_FILENO);
	signal(SIGPIPE, SIG_DFL);
	execv(command[0], command);
	fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
	_exit(127);
}

/* The last output of the tools: why one failed. */
static void show_output(void)
{
	char text[TAIL];

	if (lseek(said, -TAIL, SEEK_END) < 0)
		lseek(said, 0, SEEK_SET);
	const ssize_t got = read(said, text, TAIL);
	fprintf(stderr, "%.*s\n", got > 0 ? (int)got : 0, text);
}

/* Whether a program listens on a port; the server would take a connection for the client. */
static bool listens(unsigned port)
{
	char line[256];
	bool found = false;
	FILE *sockets = fopen("/proc/net/tcp", "re");

	while (sockets != NULL && fgets(line, sizeof(line), sockets) != NULL) {
		unsigned local;
		unsigned state;
		if (sscanf(line, " %*d: %*x:%x %*x:%*x %x", &local, &state) == 2 && local == port &&
		    state == 0x0a)
			found = true;
	}
	if (sockets != NULL)
		fclose(sockets);
	return found;
}

static bool wait_for(pid_t server, unsigned port)
{
	int status;

	while (!listens(port)) {
		if (waitpid(server, &status, WNOHANG) == server)
			return fault("the server's end before it listened");
		usleep(1000);
	}
	return true;
}

static bool run(char **command, char **server_command, unsigned port)
{
	pid_t server = 0;
	FILE *output = tmpfile();

	if (output == NULL)
		return fault("make a file");
	said = fileno(output);
	fcntl(said, F_SETFD, FD_CLOEXEC);
	if (server_command != NULL) {
		server = start(server_command);
		if (server < 0 || !wait_for(server, port))
			return false;
	}
	measure_begin();
	const pid_t tool = start(command);
	bool sound = tool >= 0 && reap(tool);
	measure_end();
	if (server > 0)
		sound = (sound ? reap(server) : end_child(server)) && sound;
	if (!sound)
		show_output();
	fclose(output);
	return sound;
}

static int usage(void)
{
	fputs("usage: tools CASE OPERATIONS [--scratch] [--server PORT COMMAND...] -- COMMAND...\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	int at = 3;
	bool scratch = false;
	char **server = NULL;
	unsigned long port = 0;

	const unsigned long operations = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
	if (operations == 0)
		return usage();
	if (strcmp(argv[at], "--scratch") == 0) {
		scratch = true;
		at++;
	}
	if (at + 2 < argc && strcmp(argv[at], "--server") == 0) {
		port = strtoul(argv[at + 1], NULL, 10);
		server = argv + at + 2;
		while (at < argc && strcmp(argv[at], "--") != 0)
			at++;
	}
	if (at + 1 >= argc || strcmp(argv[at], "--") != 0)
		return usage();
	argv[at] = NULL; /* ends the server's command */
	settle();
	case_begin(argv[1], operations);
	bool sound = !scratch || scratch_mount();
	sound = sound && run(argv + at + 1, server, (unsigned)port);
	if (scratch)
		sound = scratch_unmount() && sound;
	return case_end(sound);
}
