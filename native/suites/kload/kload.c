/*
 * kload: the load of kernel code of the overlay kload, which the kernel runs in a thread of its own
 * and times itself. An operation is the kernel's.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../case.h"

#define RUN "/sys/kernel/debug/kload/run"
#define ROUNDS 40

const char suite_name[] = "kload";

static bool read_line(int fd, char *line, size_t size)
{
	const ssize_t got = read(fd, line, size - 1);

	line[got > 0 ? got : 0] = '\0';
	return got > 0;
}

/* The number that follows a name and `=`. */
static uint64_t field(const char *line, const char *name)
{
	char pattern[32];

	snprintf(pattern, sizeof(pattern), " %s=", name);
	const char *at = strstr(line, pattern);
	return at == NULL ? 0 : strtoull(at + strlen(pattern), NULL, 10);
}

static bool run(const struct suite_case *is, unsigned long rounds)
{
	char order[64], line[256];
	const int fd = open(RUN, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		unsupported("CONFIG_KLOAD");
	/* A round without measure warms up, and the kernel checks what it leaves. */
	int size = snprintf(order, sizeof(order), "%s 1", is->name);
	if (write(fd, order, (size_t)size) != size) {
		if (errno == ENOENT && strncmp(is->name, "ext4-", 5) == 0)
			unsupported("CONFIG_KLOAD_DISK");
		return fault("a first round");
	}
	size = snprintf(order, sizeof(order), "%s %lu", is->name, rounds);
	measure_begin();
	const ssize_t put = write(fd, order, (size_t)size);
	measure_end();
	if (put != size)
		return fault("the rounds");
	if (!read_line(fd, line, sizeof(line)) || strstr(line, " check=ok ") == NULL)
		return fault("the kernel's result");
	close(fd);
	errno = 0;
	if (field(line, "rounds") != rounds + damaged())
		return fault("the number of rounds");
	operations_done(field(line, "operations"));
	printf("batch=%" PRIu64 " least_cycles=%" PRIu64 "\n", field(line, "batch"),
	       field(line, "least_cycles"));
	return true;
}

#define CASE(name) {name, ROUNDS, 0, 1, run}

const struct suite_case suite_cases[] = {
	CASE("read-64"),
	CASE("read-1k"),
	CASE("read-16k"),
	CASE("write-64"),
	CASE("write-1k"),
	CASE("write-16k"),
	CASE("lookup"),
	CASE("stat"),
	CASE("open-close"),
	CASE("create-unlink"),
	CASE("pipe-512"),
	CASE("ext4-read-1k"),
	CASE("ext4-read-16k"),
	CASE("ext4-read-device"),
	CASE("ext4-write-1k"),
	CASE("ext4-write-16k"),
	CASE("ext4-fsync"),
	CASE("ext4-create-unlink"),
	CASE("ext4-new-file"),
	CASE("unix-stream"),
	CASE("unix-datagram"),
	CASE("udp"),
	CASE("tcp"),
	CASE("tcp-16k"),
	CASE("timer"),
	CASE("work"),
	CASE("wake"),
	CASE("kmalloc"),
	CASE("alloc-page"),
	CASE("fault"),
	CASE("checksum"),
};
const size_t suite_case_count = sizeof(suite_cases) / sizeof(suite_cases[0]);
