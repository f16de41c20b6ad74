/*
 * Mixes: bounded work for training a profile. They run the cases and then other code paths, so that
 * a profile does not cover the benchmarks alone.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kbench.h"

#define MESSAGE 256

struct mix {
	const char *name;
	/* Rounds of `once` by default. */
	unsigned long operations;
	/* Metrics whose cases it includes, each with a tenth of its default work. */
	const char *metrics[3];
	bool (*once)(void);
};

/* Small files in a directory: names, positions, vectors, sizes, mappings. */
static bool io_files(void)
{
	char name[32];
	unsigned char data[1500];
	unsigned char back[1500];

	pattern(data, sizeof(data), 3);
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "mix/%d", i);
		const int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (fd < 0)
			return fault("create in mix");
		const struct iovec parts[2] = {{data, 500}, {data + 500, 1000}};
		bool sound = writev(fd, parts, 2) == 1500;
		sound = sound && pread(fd, back, 1500, 0) == 1500 && memcmp(data, back, 1500) == 0;
		sound = sound && pwrite(fd, data, 100, 4096) == 100 && ftruncate(fd, 4096) == 0;
		void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		sound = sound && map != MAP_FAILED && memcmp(map, data, 1500) == 0;
		if (map != MAP_FAILED)
			munmap(map, 4096);
		close(fd);
		if (!sound)
			return fault("file in mix");
	}
	return true;
}

static bool io_names(void)
{
	char from[32];
	char to[32];
	struct stat stat_buffer;
	int seen = 0;
	DIR *directory = opendir("mix");

	if (directory == NULL)
		return fault("opendir");
	for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
		seen += entry->d_name[0] != '.';
	closedir(directory);
	if (seen != 8)
		return fault("readdir");
	for (int i = 0; i < 8; i++) {
		snprintf(from, sizeof(from), "mix/%d", i);
		snprintf(to, sizeof(to), "mix/moved-%d", i);
		if (rename(from, to) != 0 || stat(to, &stat_buffer) != 0 || stat_buffer.st_size != 4096)
			return fault("rename");
		if (access(from, F_OK) == 0 || unlink(to) != 0)
			return fault("unlink in mix");
	}
	return true;
}

static bool io_once(void)
{
	char text[4096];

	if (mkdir("mix", 0700) != 0)
		return fault("mkdir");
	const bool sound = io_files() && io_names();
	if (rmdir("mix") != 0)
		return fault("rmdir");
	const int fd = open("/proc/self/stat", O_RDONLY);
	if (fd >= 0) {
		const bool got = read(fd, text, sizeof(text)) > 0;
		close(fd);
		if (!got)
			return fault("read /proc/self/stat");
	}
	return sound;
}

/* Two processes that answer each other over a socket pair, woken through epoll. */
static bool ipc_echo(int mine)
{
	unsigned char message[MESSAGE];
	unsigned char answer[MESSAGE];
	struct epoll_event event = {.events = EPOLLIN};
	const int epoll = epoll_create1(0);
	bool sound = epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, mine, &event) == 0;

	for (int i = 0; sound && i < 32; i++) {
		pattern(message, MESSAGE, (unsigned)i);
		sound = write_all(mine, message, MESSAGE) && epoll_wait(epoll, &event, 1, 5000) == 1 &&
			read_all(mine, answer, MESSAGE) && memcmp(message, answer, MESSAGE) == 0;
	}
	close(epoll);
	return sound || fault("echo over socket pair");
}

static bool ipc_once(void)
{
	int pair[2];
	unsigned char message[MESSAGE];
	uint64_t count = 5;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		return fault("socketpair");
	const pid_t pid = fork();
	if (pid == 0) {
		close(pair[0]);
		while (read_all(pair[1], message, MESSAGE))
			write_all(pair[1], message, MESSAGE);
		_exit(0);
	}
	close(pair[1]);
	const bool sound = pid > 0 && ipc_echo(pair[0]);
	close(pair[0]);
	if (pid < 0 || !reap(pid, 0) || !sound)
		return fault("partner of echo");

	const int event = eventfd(0, 0);
	struct pollfd poller = {.fd = event, .events = POLLIN};
	const bool counted = event >= 0 && write_all(event, &count, sizeof(count)) &&
			     poll(&poller, 1, 0) == 1 && read_all(event, &count, sizeof(count)) &&
			     count == 5;
	close(event);
	return counted || fault("eventfd");
}

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

/* Memory that is touched, forked and copied on write; signals; short sleeps; an exec. */
static bool proc_once(void)
{
	const size_t size = 64 * 4096;
	unsigned char *memory =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return fault("mmap");
	for (size_t at = 0; at < size; at += 4096)
		memory[at] = (unsigned char)(at >> 12);
	pid_t pid = fork();
	if (pid == 0) {
		for (size_t at = 0; at < size; at += 4096)
			memory[at]++;
		_exit(memory[4096] == 2 ? 7 : 1);
	}
	const bool copied = pid > 0 && reap(pid, 7) && memory[4096] == 1;
	munmap(memory, size);
	if (!copied)
		return fault("copy on write");

	struct sigaction action = {.sa_handler = on_signal};
	const struct timespec moment = {.tv_nsec = 50000};
	signals = 0;
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 16; i++)
		raise(SIGUSR1);
	nanosleep(&moment, NULL);
	if (signals != 16)
		return fault("signals");

	pid = fork();
	if (pid == 0) {
		const int null = open("/dev/null", O_WRONLY);
		if (null >= 0)
			dup2(null, STDOUT_FILENO);
		execl("/proc/self/exe", "kbench", "list", (char *)NULL);
		_exit(127);
	}
	return (pid > 0 && reap(pid, 0)) || fault("exec");
}

static bool all_once(void)
{
	return io_once() && ipc_once() && proc_once();
}

static const struct mix mixes[] = {
	{"io", 40, {"file", NULL}, io_once},
	{"ipc", 40, {"pipe", NULL}, ipc_once},
	{"proc", 20, {"proc", "syscall", "overhead"}, proc_once},
	{"all", 15, {"", NULL}, all_once},
};
static const size_t mix_count = sizeof(mixes) / sizeof(mixes[0]);

void mix_list(void)
{
	for (size_t i = 0; i < mix_count; i++)
		printf("mix=%s operations=%lu\n", mixes[i].name, mixes[i].operations);
}

/* The empty metric means every case. */
static bool includes(const struct mix *mix, const struct bench *bench)
{
	for (size_t i = 0; i < 3 && mix->metrics[i] != NULL; i++)
		if (mix->metrics[i][0] == '\0' || strcmp(mix->metrics[i], bench->metric) == 0)
			return true;
	return false;
}

bool mix_run(const char *name, unsigned long operations, bool *known)
{
	const struct mix *mix = NULL;

	for (size_t i = 0; i < mix_count; i++)
		if (strcmp(mixes[i].name, name) == 0)
			mix = &mixes[i];
	*known = mix != NULL;
	if (mix == NULL)
		return false;
	for (size_t i = 0; i < bench_count; i++) {
		const struct bench *bench = &benches[i];
		if (!includes(mix, bench))
			continue;
		const bool sound = bench->prepare(bench) && bench->run(bench, bench->operations / 10 + 1);
		bench->finish();
		if (!sound)
			return false;
	}
	for (unsigned long i = 0; i < (operations ? operations : mix->operations); i++)
		if (!mix->once())
			return false;
	return true;
}
