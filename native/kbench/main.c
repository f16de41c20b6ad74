/*
 * kbench: MEPOF's kernel benchmarks as one static program.
 *
 * The work is fixed (a number of operations, never a time), so that two kernels can be compared by
 * what they executed for it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kbench.h"
#include "marks.h"

static const char usage_text[] =
	"usage: kbench list\n"
	"       kbench run CASE [--operations N] [--rounds R]\n"
	"       kbench mix MIX [--operations N]\n"
	"       kbench selfcheck\n";

static bool faulted;

bool fault(const char *what)
{
	if (!faulted)
		fprintf(stderr, "kbench: wrong: %s (%s)\n", what, strerror(errno));
	faulted = true;
	return false;
}

bool write_all(int fd, const void *data, size_t size)
{
	return write(fd, data, size) == (ssize_t)size;
}

bool read_all(int fd, void *data, size_t size)
{
	unsigned char *at = data;

	while (size > 0) {
		const ssize_t got = read(fd, at, size);
		if (got <= 0)
			return false;
		at += got;
		size -= (size_t)got;
	}
	return true;
}

void pattern(unsigned char *data, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (unsigned char)(i * 7 + (i >> 8) + seed);
}

bool reap(int pid, int status)
{
	int got;

	return waitpid(pid, &got, 0) == pid && WIFEXITED(got) && WEXITSTATUS(got) == status;
}

bool damaged(const char *name)
{
	static const char *named;

	/* Looked up once, because measured loops call this. */
	if (named == NULL) {
		named = getenv("KBENCH_DAMAGE");
		if (named == NULL)
			named = "";
	}
	return *named != '\0' && strcmp(named, name) == 0;
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void list(void)
{
	for (size_t i = 0; i < bench_count; i++)
		printf("case=%s metric=%s unit=%s operations=%lu\n", benches[i].name, benches[i].metric,
		       benches[i].unit, benches[i].operations);
	mix_list();
}

static bool run_round(const struct bench *bench, unsigned long operations, unsigned long round)
{
	uint64_t elapsed = 0;
	bool sound = bench->prepare(bench);

	/* The warm-up fills slab, page and file caches, so that rounds are alike. */
	sound = sound && bench->run(bench, operations / 10 + 1);
	if (sound) {
		const uint64_t begin = now_ns();
		mepof_mark_start();
		sound = bench->run(bench, operations);
		mepof_mark_stop();
		elapsed = now_ns() - begin;
	}
	bench->finish();
	printf("case=%s metric=%s round=%lu operations=%lu bytes=%" PRIu64 " elapsed_ns=%" PRIu64
	       " check=%s\n",
	       bench->name, bench->metric, round, operations, operations * bench->bytes(bench), elapsed,
	       sound ? "ok" : "failed");
	fflush(stdout);
	return sound;
}

static bool parse_count(const char *text, unsigned long *count)
{
	char *end;

	errno = 0;
	*count = strtoul(text, &end, 10);
	return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' && *count > 0;
}

static int usage(const char *complaint, const char *word)
{
	fprintf(stderr, "kbench: %s%s%s\n%s", complaint, word ? ": " : "", word ? word : "", usage_text);
	return 2;
}

int main(int argc, char **argv)
{
	unsigned long operations = 0;
	unsigned long rounds = 1;

	if (argc < 2)
		return usage("what to do?", NULL);
	const char *verb = argv[1];
	if (strcmp(verb, "list") == 0 && argc == 2) {
		list();
		return 0;
	}
	if (strcmp(verb, "selfcheck") == 0 && argc == 2)
		return selfcheck() ? 0 : 1;
	const bool is_run = strcmp(verb, "run") == 0;
	if (!is_run && strcmp(verb, "mix") != 0)
		return usage("unknown or too many words", verb);
	if (argc < 3)
		return usage("run or mix what? See `kbench list`", NULL);
	for (int i = 3; i < argc; i += 2) {
		unsigned long *count = NULL;
		if (strcmp(argv[i], "--operations") == 0)
			count = &operations;
		else if (is_run && strcmp(argv[i], "--rounds") == 0)
			count = &rounds;
		if (count == NULL)
			return usage("unknown option", argv[i]);
		if (i + 1 == argc || !parse_count(argv[i + 1], count))
			return usage("this option needs a number above zero", argv[i]);
	}
	if (!is_run) {
		bool known;
		const bool sound = mix_run(argv[2], operations, &known);
		if (!known)
			return usage("unknown mix", argv[2]);
		printf("mix=%s check=%s\n", argv[2], sound ? "ok" : "failed");
		return sound ? 0 : 1;
	}
	const struct bench *bench = bench_find(argv[2]);
	if (bench == NULL)
		return usage("unknown case", argv[2]);
	for (unsigned long round = 0; round < rounds; round++)
		if (!run_round(bench, operations ? operations : bench->operations, round))
			return 1;
	return 0;
}
