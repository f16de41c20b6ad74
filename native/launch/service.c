/*
 * Services: started, watched until they are ready, stopped. A keeper process waits for each one, so
 * that run/NAME.ended says how it ended as soon as it does.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

#define TAIL 65536

/* Never freed: this program runs for a moment. */
const char *state_path(const char *name, const char *suffix)
{
	char *path;

	if (asprintf(&path, "%s/run", root) < 0)
		fail("not enough memory", "for a path");
	mkdir(path, 0755);
	free(path);
	if (asprintf(&path, "%s/run/%s%s", root, name, suffix) < 0)
		fail("not enough memory", "for a path");
	return path;
}

/* Written beside and renamed, so that whoever finds it finds all of it. */
void state_write(const char *path, const char *text)
{
	char new[PATH_MAX];

	snprintf(new, sizeof(new), "%s.new", path);
	FILE *file = fopen(new, "we");
	if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0 || rename(new, path) != 0)
		fail("cannot write", path);
}

const char *tail_of(const char *path)
{
	static char text[TAIL + 1];
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	text[0] = '\0';
	if (fd < 0)
		return text;
	const off_t size = lseek(fd, 0, SEEK_END);
	lseek(fd, size > TAIL ? size - TAIL : 0, SEEK_SET);
	const ssize_t got = read(fd, text, TAIL);
	text[got > 0 ? got : 0] = '\0';
	close(fd);
	return text;
}

const char *last_line_of(const char *name)
{
	static char text[TAIL + 1];

	snprintf(text, sizeof(text), "%s", tail_of(state_path(name, ".log")));
	for (char *end = text + strlen(text); end > text;) {
		char *line = memrchr(text, '\n', (size_t)(end - text));
		line = line ? line + 1 : text;
		*end = '\0';
		if (line[strspn(line, " \t\r\n")] != '\0')
			return line;
		end = line > text ? line - 1 : text;
	}
	return "no output";
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static void pause_ms(long milliseconds)
{
	const struct timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};

	nanosleep(&time, NULL);
}

static uint64_t now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000u + (uint64_t)time.tv_nsec / 1000000u;
}

/* Its own process: waits for the service and notes how it ended. */
static _Noreturn void keep(const char *name, const struct command *command)
{
	char text[64];
	int status;
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int log = open(state_path(name, ".log"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);

	/* The caller's output must not stay open as long as the service lives. */
	for (int fd = 0; fd < 3; fd++)
		if (dup2(fd == 0 ? null : log, fd) < 0)
			_exit(1);
	setsid();
	const pid_t pid = command_fork(command);
	if (pid < 0)
		fail("cannot start", command->argv[0]);
	if (pid == 0) {
		setsid();
		command_become(command, command->argv);
	}
	snprintf(text, sizeof(text), "%d", pid);
	state_write(state_path(name, ".pid"), text);
	while (waitpid(pid, &status, 0) != pid)
		;
	if (WIFEXITED(status))
		snprintf(text, sizeof(text), "ended with status %d", WEXITSTATUS(status));
	else
		snprintf(text, sizeof(text), "was killed by signal %d", WTERMSIG(status));
	state_write(state_path(name, ".ended"), text);
	_exit(0);
}

static bool answers(const struct sockaddr *address, socklen_t size)
{
	const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	const bool does = connect(fd, address, size) == 0;
	close(fd);
	return does;
}

static bool port_answers(int port)
{
	const in_port_t number = htons((uint16_t)port);
	struct sockaddr_in ip4 = {.sin_family = AF_INET, .sin_port = number};
	const struct sockaddr_in6 ip6 = {
		.sin6_family = AF_INET6, .sin6_port = number, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

	ip4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return answers((const struct sockaddr *)&ip4, sizeof(ip4)) ||
	       answers((const struct sockaddr *)&ip6, sizeof(ip6));
}

/* Run the check to its end, or to the deadline. Its output follows the service's. */
static bool check_succeeds(const char *name, const struct command *command, uint64_t deadline)
{
	int status = 1;
	const pid_t pid = fork();

	if (pid < 0)
		return false;
	if (pid == 0) {
		const int log = open(state_path(name, ".log"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
		setsid();
		dup2(log, STDOUT_FILENO);
		dup2(log, STDERR_FILENO);
		command_become(command, command->ready_argv);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now_ms() >= deadline) {
			kill(-pid, SIGKILL);
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return false;
		}
		pause_ms(5);
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* What the service lacks to be ready; NULL if it is. */
static const char *lacking(const char *name, const struct command *command, const char *log,
			   uint64_t deadline)
{
	static char text[512];

	text[0] = '\0';
	if (command->ready_port != 0 && !port_answers(command->ready_port))
		snprintf(text, sizeof(text), "port %d of 127.0.0.1 and ::1 accepted no connection",
			 command->ready_port);
	else if (command->ready_output != NULL &&
		 strstr(tail_of(log), command->ready_output) == NULL)
		snprintf(text, sizeof(text), "it did not write `%s`", command->ready_output);
	else if (command->ready_argv[0] != NULL && !check_succeeds(name, command, deadline))
		snprintf(text, sizeof(text), "`%s` did not succeed", command->ready_argv[0]);
	return text[0] ? text : NULL;
}

/* Signal the service, or with its whole session what it left behind. */
static void signal_service(const char *name, int number, bool whole)
{
	const pid_t pid = (pid_t)strtol(tail_of(state_path(name, ".pid")), NULL, 10);

	if (pid > 1)
		kill(whole ? -pid : pid, number);
}

static bool await(const char *path, long limit_ms)
{
	const uint64_t deadline = now_ms() + (uint64_t)limit_ms;

	while (!exists(path)) {
		if (now_ms() >= deadline)
			return false;
		pause_ms(10);
	}
	return true;
}

static void end_by_force(const char *name)
{
	signal_service(name, SIGKILL, true);
	await(state_path(name, ".ended"), 5000);
}

static void report_end(const char *name, const char *expected)
{
	char how[64];

	snprintf(how, sizeof(how), "%s", tail_of(state_path(name, ".ended")));
	printf("the service `%s` %s before it was %s: %s\n", name, how, expected, last_line_of(name));
}

int service_start(const char *name, const struct command *command)
{
	const uint64_t deadline = now_ms() + (uint64_t)command->limit_ms;
	const char *ended = state_path(name, ".ended");
	const char *log = state_path(name, ".log");
	const char *lacks = "it did not start";

	state_write(state_path(name, ".failed"), name);
	const pid_t keeper = fork();
	if (keeper < 0)
		fail("cannot start", command->argv[0]);
	if (keeper == 0)
		keep(name, command);
	if (!await(state_path(name, ".pid"), command->limit_ms))
		fail("cannot start", command->argv[0]);
	while (!exists(ended) && lacks != NULL && now_ms() < deadline) {
		lacks = lacking(name, command, log, deadline);
		if (lacks != NULL)
			pause_ms(10);
	}
	/* Something else may have answered in its stead. */
	if (exists(ended)) {
		report_end(name, "ready");
		return 1;
	}
	if (lacks != NULL) {
		end_by_force(name);
		printf("the service `%s` was not ready within %g s, because %s: %s\n", name,
		       (double)command->limit_ms / 1000, lacks, last_line_of(name));
		return 1;
	}
	unlink(state_path(name, ".failed"));
	return 0;
}

int service_stop(const char *name, const struct command *command)
{
	const char *ended = state_path(name, ".ended");

	if (exists(state_path(name, ".failed")) || !exists(state_path(name, ".pid")))
		return 0; /* that it did not start has been reported */
	if (exists(ended)) {
		report_end(name, "stopped");
		return 1;
	}
	signal_service(name, command->signal, false);
	if (!await(ended, command->limit_ms)) {
		printf("the service `%s` did not stop within %g s of signal %d, and was killed\n", name,
		       (double)command->limit_ms / 1000, command->signal);
		end_by_force(name);
	} else {
		signal_service(name, SIGKILL, true); /* what it left behind */
	}
	/* It ended as it should: this does not break the setup of what runs next. */
	rename(ended, state_path(name, ".stopped"));
	unlink(state_path(name, ".pid"));
	return 0;
}

bool setup_is_broken(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/run", root);
	DIR *state = opendir(path);
	if (state == NULL)
		return false;
	bool broken = false;
	for (struct dirent *entry; !broken && (entry = readdir(state)) != NULL;) {
		char *dot = strrchr(entry->d_name, '.');
		if (dot == NULL)
			continue;
		const bool failed = strcmp(dot, ".failed") == 0;
		broken = failed || strcmp(dot, ".ended") == 0;
		if (broken) {
			*dot = '\0';
			printf("the setup `%s` %s\n", entry->d_name, failed ? "failed" : "has ended");
		}
	}
	closedir(state);
	return broken;
}
