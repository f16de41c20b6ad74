/* Loads of the kernel: calls, pipes, processes, files, shell scripts. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unixbench.h"

/* Buffers of the largest file that is copied. */
#define BLOCKS 500
#define LARGEST 4096
/* Environment variable with the remaining number of execs. */
#define STEPS_LEFT "MEPOF_EXECL_STEPS"

static unsigned char buffer[LARGEST];
static int ends[2];

static bool nothing(const struct suite_case *is)
{
	(void)is;
	return true;
}

static bool nothing_left(const struct suite_case *is, unsigned long operations)
{
	(void)is;
	(void)operations;
	return true;
}

/* syscall: five cheap calls, raw, since a C library may answer some of them itself. */

static bool work_syscall(const struct suite_case *is, unsigned long operations)
{
	const long pid = getpid();
	const long uid = getuid();

	(void)is;
	umask(022);
	for (unsigned long i = 0; i < operations; i++) {
		const long copy = syscall(SYS_dup, 0);
		if (copy < 0 || syscall(SYS_close, copy) != 0)
			return fault("dup and close");
		if (syscall(SYS_getpid) != pid + damaged() || syscall(SYS_getuid) != uid)
			return fault("getpid and getuid");
		if (syscall(SYS_umask, 022) != 022)
			return fault("umask");
	}
	return true;
}

const struct load load_syscall = {nothing, work_syscall, nothing_left};

/* pipe: one process writes a message and reads it back. */

static bool prepare_pipe(const struct suite_case *is)
{
	pattern(buffer, is->size, 4);
	return pipe(ends) == 0 || fault("pipe");
}

static bool work_pipe(const struct suite_case *is, unsigned long operations)
{
	unsigned char back[LARGEST];

	for (unsigned long i = 0; i < operations; i++) {
		buffer[0] = (unsigned char)i;
		buffer[is->size - 1] = (unsigned char)(i >> 8);
		if (!write_all(ends[1], buffer, is->size) || !read_all(ends[0], back, is->size))
			return fault("a message through a pipe");
		if (back[0] != (unsigned char)(i + damaged()) ||
		    back[is->size - 1] != buffer[is->size - 1])
			return fault("contents of a pipe");
	}
	return memcmp(buffer, back, is->size) == 0 || fault("contents of a pipe");
}

const struct load load_pipe = {prepare_pipe, work_pipe, nothing_left};

/* context: a number to another process and back, over two pipes. */

static int to_other[2];
static int from_other[2];
static pid_t other;

static bool prepare_context(const struct suite_case *is)
{
	uint32_t number;

	(void)is;
	if (pipe(to_other) != 0 || pipe(from_other) != 0)
		return fault("pipe");
	other = fork_child();
	if (other < 0)
		return false;
	if (other == 0) {
		close(to_other[1]);
		while (read_all(to_other[0], &number, sizeof(number))) {
			number += damaged() ? 2 : 1;
			if (!write_all(from_other[1], &number, sizeof(number)))
				leave(false);
		}
		leave(true);
	}
	close(from_other[1]);
	return close(to_other[0]) == 0;
}

static bool work_context(const struct suite_case *is, unsigned long operations)
{
	(void)is;
	for (uint32_t i = 0; i < operations; i++) {
		uint32_t number = i;
		if (!write_all(to_other[1], &number, sizeof(number)) ||
		    !read_all(from_other[0], &number, sizeof(number)))
			return fault("a number through pipes");
		if (number != i + 1)
			return fault("the number that came back");
	}
	return true;
}

static bool finish_context(const struct suite_case *is, unsigned long operations)
{
	(void)is;
	(void)operations;
	close(to_other[1]);
	return reap(other);
}

const struct load load_context = {prepare_context, work_context, finish_context};

/* spawn: a process is created and reaped. */

static bool work_spawn(const struct suite_case *is, unsigned long operations)
{
	(void)is;
	for (unsigned long i = 0; i < operations; i++) {
		int status;
		const pid_t child = fork();
		if (child < 0)
			return fault("fork");
		if (child == 0)
			_exit((int)(i & 0x7f));
		if (waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
		    WEXITSTATUS(status) != (int)(i & 0x7f) + damaged())
			return fault("exit status of a child");
	}
	return true;
}

const struct load load_spawn = {nothing, work_spawn, nothing_left};

/*
 * execl: a process executes this program again and again. The remaining number is in its
 * environment, and is checked before main, so that the rest of the program does not run.
 */

static void become_again(unsigned long left)
{
	char setting[64];
	char *argv[] = {(char[]){"unixbench"}, NULL};
	char *environment[] = {setting, NULL};

	snprintf(setting, sizeof(setting), STEPS_LEFT "=%lu", left);
	execve("/proc/self/exe", argv, environment);
	_exit(126);
}

__attribute__((constructor)) static void go_on_becoming(void)
{
	const char *text = getenv(STEPS_LEFT);

	if (text == NULL)
		return;
	const unsigned long left = strtoul(text, NULL, 10);
	if (left > 0)
		become_again(left - 1);
	_exit(55);
}

static bool work_execl(const struct suite_case *is, unsigned long operations)
{
	int status;
	const pid_t child = fork();

	(void)is;
	if (child < 0)
		return fault("fork");
	if (child == 0)
		become_again(operations - 1);
	return (waitpid(child, &status, 0) == child && WIFEXITED(status) &&
		WEXITSTATUS(status) == 55 + damaged()) ||
	       fault("the end of a program that became itself");
}

const struct load load_execl = {nothing, work_execl, nothing_left};

/* copy: a file's blocks to another file, from the start again after the last. */

static int source;
static int copy;

static bool prepare_copy(const struct suite_case *is)
{
	source = open("source", O_RDWR | O_CREAT | O_TRUNC, 0600);
	copy = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (source < 0 || copy < 0)
		return fault("create a file");
	for (unsigned i = 0; i < BLOCKS; i++) {
		pattern(buffer, is->size, i);
		if (!write_all(source, buffer, is->size))
			return fault("write a file");
	}
	return true;
}

static bool work_copy(const struct suite_case *is, unsigned long operations)
{
	for (unsigned long i = 0; i < operations; i++) {
		if (i % BLOCKS == 0 && (lseek(source, 0, SEEK_SET) != 0 || lseek(copy, 0, SEEK_SET) != 0))
			return fault("lseek");
		if (read(source, buffer, is->size) != (ssize_t)is->size)
			return fault("read a file");
		if (damaged())
			buffer[0]++;
		if (write(copy, buffer, is->size) != (ssize_t)is->size)
			return fault("write a file");
	}
	return true;
}

static bool finish_copy(const struct suite_case *is, unsigned long operations)
{
	unsigned char expected[LARGEST];
	struct stat stat;
	const unsigned blocks = operations < BLOCKS ? 1 : BLOCKS;

	for (unsigned i = 0; i < blocks; i++) {
		pattern(expected, is->size, i);
		if (pread(copy, buffer, is->size, (off_t)(i * is->size)) != (ssize_t)is->size ||
		    memcmp(buffer, expected, is->size) != 0)
			return fault("contents of a copy");
	}
	if (fstat(copy, &stat) != 0 || stat.st_size > (off_t)(BLOCKS * is->size))
		return fault("size of a copy");
	return (unlink("source") == 0 && unlink("copy") == 0) || fault("unlink");
}

const struct load load_copy = {prepare_copy, work_copy, finish_copy};

/* shell: a script that sorts, searches and counts, with a process for every step. */

#define LINES 100

static const char script[] =
	"b=/bin/busybox\n"
	"$b sort input > sorted\n"
	"$b od sorted | $b sort -n > dump\n"
	"$b grep 7 sorted | $b tee found | $b wc -l > count\n"
	"$b rm sorted dump found\n";

static bool prepare_shell(const struct suite_case *is)
{
	FILE *input = fopen("input", "w");
	FILE *text = fopen("script", "w");
	uint32_t number = 1;

	(void)is;
	if (input == NULL || text == NULL)
		return fault("create a file");
	for (int i = 0; i < LINES; i++) {
		number = number * 1103515245u + 12345u;
		fprintf(input, "%u line\n", number >> 8);
	}
	fputs(script, text);
	return (fclose(input) == 0 && fclose(text) == 0) || fault("write a file");
}

/* How many lines contain a 7: what the script must have counted. */
static int lines_with_7(void)
{
	FILE *input = fopen("input", "r");
	char line[64];
	int count = 0;

	while (input != NULL && fgets(line, sizeof(line), input) != NULL)
		count += strchr(line, '7') != NULL;
	if (input != NULL)
		fclose(input);
	return count;
}

static bool work_shell(const struct suite_case *is, unsigned long operations)
{
	const int expected = lines_with_7() + damaged();

	(void)is;
	for (unsigned long i = 0; i < operations; i++) {
		int counted = -1;
		const pid_t child = fork();
		if (child < 0)
			return fault("fork");
		if (child == 0) {
			execl("/bin/busybox", "busybox", "sh", "script", (char *)NULL);
			_exit(126);
		}
		if (!reap(child))
			return false;
		FILE *count = fopen("count", "r");
		if (count == NULL || fscanf(count, "%d", &counted) != 1 || counted != expected)
			return fault("what a script counted");
		fclose(count);
	}
	return true;
}

static bool finish_shell(const struct suite_case *is, unsigned long operations)
{
	(void)is;
	(void)operations;
	return (unlink("input") == 0 && unlink("script") == 0 && unlink("count") == 0) ||
	       fault("unlink");
}

const struct load load_shell = {prepare_shell, work_shell, finish_shell};
