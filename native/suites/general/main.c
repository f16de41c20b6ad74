/* The actions of general, and what they share. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "general.h"

#define MAX_LACKING 48
/* As unsupported() ends a process. */
#define SKIPPED 77

const char suite_name[] = "general";

/* The rounds make the actions weigh about the same in the kernel (docs/general.md). */
static const struct action {
	const char *name;
	unsigned rounds;
	bool (*run)(unsigned rounds);
} actions[] = {
	{"processes", 20, processes},
	{"programs", 20, programs},
	{"scripts", 3, scripts},
	{"threads", 43, threads},
	{"mappings", 50, mappings},
	{"faults", 7, faults},
	{"small-files", 87, small_files},
	{"large-files", 25, large_files},
	{"transfers", 52, transfers},
	{"directories", 21, directories},
	{"paths", 78, paths},
	{"attributes", 136, attributes},
	{"disk-files", 3, disk_files},
	{"disk-records", 4, disk_records},
	{"pipes", 17, pipes},
	{"unix-sockets", 23, unix_sockets},
	{"tcp-requests", 10, tcp_requests},
	{"tcp-streams", 15, tcp_streams},
	{"udp", 30, udp},
	{"cable", 6, cable},
	{"netlink", 60, netlink},
	{"timers", 62, timers},
	{"futexes", 13, futexes},
	{"polling", 19, polling},
	{"rings", 16, rings},
	{"signals", 39, signals},
	{"queues", 29, queues},
	{"scheduling", 18, scheduling},
	{"credentials", 65, credentials},
	{"namespaces", 8, namespaces},
	{"system-files", 2, system_files},
	{"terminals", 50, terminals},
	{"binder", 40, binder},
	{"input", 40, input},
};

/* What the kernel lacks, by this process and its children. The names are constants. */
static struct lacking {
	_Atomic unsigned count;
	const char *names[MAX_LACKING];
} *lacking;

static pid_t starter;

bool without(const char *needs)
{
	const unsigned known = atomic_load(&lacking->count);

	for (unsigned i = 0; i < known && i < MAX_LACKING; i++)
		if (lacking->names[i] != NULL && strcmp(lacking->names[i], needs) == 0)
			return true;
	const unsigned at = atomic_fetch_add(&lacking->count, 1);
	if (at < MAX_LACKING)
		lacking->names[at] = needs;
	return true;
}

/* A guest's programs may do everything; elsewhere a refusal is the user's, not the kernel's. */
static bool is_privileged(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2] = {0};

	return syscall(SYS_capget, &header, sets) == 0 &&
	       sets[0].effective & (1u << CAP_SYS_ADMIN) && sets[0].effective & (1u << CAP_NET_ADMIN);
}

bool lacks(const char *needs)
{
	switch (errno) {
	case ENOSYS:
	case EAFNOSUPPORT:
	case EPROTONOSUPPORT:
	case ESOCKTNOSUPPORT:
	case EOPNOTSUPP:
	case ENOPROTOOPT:
	case ENODEV:
	case ENXIO:
	case ENOENT:
		return without(needs);
	case EPERM:
	case EACCES:
	case EROFS:
		if (!is_privileged() || !in_guest())
			return without(needs);
	}
	return fault(needs);
}

bool in_guest(void)
{
	return starter == 1;
}

bool same(const void *one, const void *other, size_t size)
{
	return !damaged() && memcmp(one, other, size) == 0;
}

static uint32_t state;

void seed(uint32_t value)
{
	state = value * 2654435761u | 1;
}

uint32_t below(uint32_t limit)
{
	/* Marsaglia's xorshift. */
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return (uint32_t)((uint64_t)state * limit >> 32);
}

bool apart(bool (*part)(unsigned rounds), unsigned rounds, const char *needs)
{
	int status;
	const pid_t child = fork_child();

	if (child < 0)
		return false;
	if (child == 0) {
		/* unsupported() writes a suite's line. */
		const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup2(null, STDOUT_FILENO);
		leave(part(rounds));
	}
	if (waitpid(child, &status, 0) != child)
		return fault("wait for a part");
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		return without(needs);
	return (WIFEXITED(status) && WEXITSTATUS(status) == 0) || fault("a part's end");
}

bool put_file(const char *name, const void *data, size_t size, mode_t mode)
{
	const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (fd < 0)
		return false;
	const bool put = write_all(fd, data, size);
	return close(fd) == 0 && put;
}

ssize_t get_file(const char *name, void *data, size_t capacity)
{
	unsigned char *at = data;
	size_t size = 0;
	ssize_t got = 0;
	const int fd = open(name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	while (size + 1 < capacity && (got = read(fd, at + size, capacity - 1 - size)) > 0)
		size += (size_t)got;
	close(fd);
	at[size] = '\0';
	return got < 0 ? -1 : (ssize_t)size;
}

bool put_setting(const char *name, const char *text)
{
	const int fd = open(name, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	const bool put = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	const int error = errno;
	close(fd);
	errno = error;
	return put;
}

/* Everything that an action makes is in a directory of its own, which must be empty at the end. */
static bool run_action(const struct action *action, unsigned rounds)
{
	char name[64];

	snprintf(name, sizeof(name), "general-%s-%d", action->name, (int)getpid());
	TRY(mkdir(name, 0755) == 0 && chdir(name) == 0, "make a directory");
	seed((uint32_t)(action - actions) + 1);
	const bool sound = action->run(rounds);
	TRY(chdir("..") == 0, "leave a directory");
	if (!sound)
		return false;
	TRY(rmdir(name) == 0, "remove the action's directory");
	/* Every child has been waited for. */
	TRY(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "a child that was not reaped");
	return true;
}

static void print_result(const char *name, bool sound)
{
	const unsigned count = atomic_load(&lacking->count);

	printf("action=%s check=%s", name, sound ? "ok" : "failed");
	for (unsigned i = 0; i < count && i < MAX_LACKING; i++)
		printf("%s%s", i == 0 ? " lacks=" : ",", lacking->names[i]);
	printf("\n");
	fflush(stdout);
}

static int usage(void)
{
	fprintf(stderr, "usage: general list\n       general ACTION [--scale N]\n");
	return 2;
}

int main(int argc, char **argv)
{
	unsigned long scale = 1;

	if (argc == 2 && strcmp(argv[1], "list") == 0) {
		for (size_t i = 0; i < COUNT(actions); i++)
			printf("action=%s rounds=%u\n", actions[i].name, actions[i].rounds);
		return 0;
	}
	if (argc == 4 && strcmp(argv[2], "--scale") == 0) {
		char *end;
		scale = strtoul(argv[3], &end, 10);
		if (argv[3][0] < '0' || argv[3][0] > '9' || *end != '\0' || scale == 0)
			return usage();
	} else if (argc != 2) {
		return usage();
	}
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	starter = getppid();
	lacking = shared_memory(sizeof(*lacking));
	for (size_t i = 0; i < COUNT(actions); i++) {
		if (strcmp(actions[i].name, argv[1]) != 0)
			continue;
		const unsigned long rounds = actions[i].rounds / scale;
		const bool sound = run_action(&actions[i], rounds > 0 ? (unsigned)rounds : 1);
		print_result(argv[1], sound);
		return sound ? 0 : 1;
	}
	return usage();
}
