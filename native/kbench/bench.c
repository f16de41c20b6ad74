/*
 * The eight cases of MEPOF's five metrics. Every loop checks what the kernel returns: a kernel that
 * was optimised into a wrong one must not look fast.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kbench.h"

#define BUFFER_MAX 8192

static unsigned char outgoing[BUFFER_MAX];
static unsigned char incoming[BUFFER_MAX];
static int ends[2] = {-1, -1};

/*
 * Compares whole words: a C library's memcmp may compare single bytes, and outweigh the kernel's
 * work.
 */
static bool same(const unsigned char *one, const unsigned char *two, size_t size)
{
	uint64_t difference = 0;

	for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
		uint64_t a;
		uint64_t b;
		memcpy(&a, one + at, sizeof(a));
		memcpy(&b, two + at, sizeof(b));
		difference |= a ^ b;
	}
	return difference == 0;
}

static uint64_t no_bytes(const struct bench *bench)
{
	(void)bench;
	return 0;
}

static void close_ends(void)
{
	for (int i = 0; i < 2; i++) {
		if (ends[i] >= 0)
			close(ends[i]);
		ends[i] = -1;
	}
}

/* syscall: the cheap calls of UnixBench's mix in turn; an operation is one call. */

static bool syscall_prepare(const struct bench *bench)
{
	(void)bench;
	ends[0] = open("/", O_RDONLY | O_DIRECTORY);
	umask(022);
	return ends[0] >= 0 || fault("open /");
}

static bool syscall_run(const struct bench *bench, unsigned long operations)
{
	(void)bench;
	const long pid = damaged("syscall") ? 0 : getpid();
	const long uid = getuid();
	long copy = -1;

	/* Raw calls, because a C library may answer some of these without the kernel. */
	for (unsigned long i = 0; i < operations; i++) {
		switch (i % 5) {
		case 0:
			copy = syscall(SYS_dup, ends[0]);
			if (copy < 0)
				return fault("dup");
			break;
		case 1:
			if (syscall(SYS_close, copy) != 0)
				return fault("close");
			copy = -1;
			break;
		case 2:
			if (syscall(SYS_getpid) != pid)
				return fault("getpid");
			break;
		case 3:
			if (syscall(SYS_getuid) != uid)
				return fault("getuid");
			break;
		default:
			if (syscall(SYS_umask, 022) != 022)
				return fault("umask");
		}
	}
	if (copy >= 0)
		close((int)copy);
	return true;
}

/* overhead: into the kernel and out again, with almost nothing between. */

static bool overhead_prepare(const struct bench *bench)
{
	(void)bench;
	return true;
}

static bool overhead_run(const struct bench *bench, unsigned long operations)
{
	(void)bench;
	const long parent = damaged("overhead") ? -1 : getppid();

	for (unsigned long i = 0; i < operations; i++)
		if (syscall(SYS_getppid) != parent)
			return fault("getppid");
	return true;
}

static void nothing(void)
{
}

/* pipe: one process writes a message and reads it back, so that no scheduling interferes. */

static bool pipe_prepare(const struct bench *bench)
{
	pattern(outgoing, bench->buffer, 1);
	return pipe(ends) == 0 || fault("pipe");
}

static bool pipe_run(const struct bench *bench, unsigned long operations)
{
	const ssize_t size = (ssize_t)bench->buffer;

	for (unsigned long i = 0; i < operations; i++) {
		outgoing[0] = (unsigned char)i;
		if (write(ends[1], outgoing, bench->buffer) != size)
			return fault("write to pipe");
		if (damaged(bench->name))
			outgoing[1]++;
		if (read(ends[0], incoming, bench->buffer) != size)
			return fault("read from pipe");
		if (!same(outgoing, incoming, bench->buffer))
			return fault("contents of pipe");
	}
	return true;
}

static uint64_t pipe_bytes(const struct bench *bench)
{
	return 2 * bench->buffer;
}

/* proc: create a process and reap it; the child returns a given exit status. */

static bool proc_run(const struct bench *bench, unsigned long operations)
{
	(void)bench;
	for (unsigned long i = 0; i < operations; i++) {
		const int status = (int)(i & 0x7f);
		const pid_t pid = fork();
		if (pid < 0)
			return fault("fork");
		if (pid == 0)
			_exit(damaged("proc") ? 99 : status);
		if (!reap(pid, status))
			return fault("exit status of child");
	}
	return true;
}

/*
 * file: create a file, write it in buffers, copy it buffer by buffer to a second one, read
 * that back and compare, remove both.
 */

static bool file_prepare(const struct bench *bench)
{
	pattern(outgoing, bench->file, 2);
	return true;
}

static bool file_once(const struct bench *bench, int source, int copy)
{
	const size_t step = bench->buffer;
	struct stat stat;

	for (size_t at = 0; at < bench->file; at += step)
		if (write(source, outgoing + at, step) != (ssize_t)step)
			return fault("write file");
	if (lseek(source, 0, SEEK_SET) != 0)
		return fault("lseek");
	for (size_t at = 0; at < bench->file; at += step) {
		if (read(source, incoming, step) != (ssize_t)step)
			return fault("read file");
		if (damaged(bench->name))
			incoming[0]++;
		if (write(copy, incoming, step) != (ssize_t)step)
			return fault("copy file");
	}
	if (read(source, incoming, step) != 0)
		return fault("end of file");
	if (lseek(copy, 0, SEEK_SET) != 0)
		return fault("lseek");
	memset(incoming, 0, bench->file);
	for (size_t at = 0; at < bench->file; at += step)
		if (read(copy, incoming + at, step) != (ssize_t)step)
			return fault("read file back");
	if (!same(outgoing, incoming, bench->file))
		return fault("contents of file");
	if (fstat(copy, &stat) != 0 || stat.st_size != (off_t)bench->file)
		return fault("size of file");
	return true;
}

static bool file_run(const struct bench *bench, unsigned long operations)
{
	static const char *const names[2] = {"kbench-source", "kbench-copy"};

	for (unsigned long i = 0; i < operations; i++) {
		memcpy(outgoing, &i, sizeof(i));
		for (int f = 0; f < 2; f++) {
			ends[f] = open(names[f], O_RDWR | O_CREAT | O_TRUNC, 0600);
			if (ends[f] < 0)
				return fault("create file");
		}
		if (!file_once(bench, ends[0], ends[1]))
			return false;
		close_ends();
		if (unlink(names[0]) != 0 || unlink(names[1]) != 0)
			return fault("unlink");
	}
	return true;
}

/* Written, copied (read and written), read back. */
static uint64_t file_bytes(const struct bench *bench)
{
	return 4 * bench->file;
}

#define PIPE_CASE(size, count)                                                             \
	{"pipe" #size, "pipe",     "messages/s", (count),    0, (size), pipe_prepare, pipe_run, \
	 close_ends,   pipe_bytes}
#define FILE_CASE(suffix, count, size, buffer)                                            \
	{"file" suffix, "file",     "bytes/s", (count), (size), (buffer), file_prepare, file_run, \
	 close_ends,    file_bytes}

const struct bench benches[] = {
	{"syscall", "syscall", "calls/s", 60000, 0, 0, syscall_prepare, syscall_run, close_ends,
	 no_bytes},
	{"overhead", "overhead", "ns/call", 80000, 0, 0, overhead_prepare, overhead_run, nothing,
	 no_bytes},
	PIPE_CASE(128, 10000),
	PIPE_CASE(512, 10000),
	{"proc", "proc", "processes/s", 200, 0, 0, overhead_prepare, proc_run, nothing, no_bytes},
	FILE_CASE("512", 350, 512, 128),
	FILE_CASE("1024", 350, 1024, 256),
	FILE_CASE("8k", 200, 8192, 1024),
};
const size_t bench_count = sizeof(benches) / sizeof(benches[0]);

const struct bench *bench_find(const char *name)
{
	for (size_t i = 0; i < bench_count; i++)
		if (strcmp(benches[i].name, name) == 0)
			return &benches[i];
	return NULL;
}
