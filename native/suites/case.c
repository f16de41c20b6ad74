/* Shared by the cases of all suites: the interval, the result line, and checks. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "case.h"
#include "marks.h"

#define NOT_SUPPORTED 77
/* Far more than the kernel's workers need, which wait for some grace periods one after another. */
#define SETTLE_MS 500

static const char *running = "";
static atomic_bool faulted;
static unsigned measured;
static uint64_t began;
static uint64_t elapsed;
static uint64_t bytes;
static unsigned long done;
static uint64_t *latencies;
static unsigned long latency_capacity;
static unsigned long latency_count;

uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void measure_begin(void)
{
	latency_count = 0;
	began = now_ns();
	mepof_mark_start();
}

void measure_end(void)
{
	mepof_mark_stop();
	elapsed = now_ns() - began;
	measured++;
}

void gate_init(struct gate *gate, unsigned workers, bool across)
{
	pthread_barrierattr_t attributes;

	pthread_barrierattr_init(&attributes);
	pthread_barrierattr_setpshared(&attributes, across ? PTHREAD_PROCESS_SHARED
							   : PTHREAD_PROCESS_PRIVATE);
	pthread_barrier_init(&gate->barrier, &attributes, workers + 1);
}

/*
 * All threads meet four times: everyone is ready; the interval has begun; everyone is done; the
 * interval has ended. Without the fourth, the last worker would clean up while the thread that ends
 * the interval waits to be scheduled.
 */
static void meet(struct gate *gate)
{
	pthread_barrier_wait(&gate->barrier);
}

void gate_begin(struct gate *gate)
{
	meet(gate);
	meet(gate);
}

void gate_end(struct gate *gate)
{
	meet(gate);
	meet(gate);
}

void measure_gate(struct gate *gate)
{
	meet(gate);
	measure_begin();
	meet(gate);
	meet(gate);
	measure_end();
	meet(gate);
}

bool fault(const char *what)
{
	const int error = errno;

	/* Later errors, and those of other threads, say less. */
	if (!atomic_exchange(&faulted, true))
		fprintf(stderr, "%s: wrong: %s (%s)\n", suite_name, what, strerror(error));
	return false;
}

void unsupported(const char *needs)
{
	printf("case=%s check=unsupported needs=%s\n", running, needs);
	fflush(stdout);
	_exit(NOT_SUPPORTED);
}

void leave(bool sound)
{
	_exit(sound ? 0 : 1);
}

pid_t fork_child(void)
{
	const pid_t parent = getpid();
	const pid_t child = fork();

	if (child < 0)
		fault("fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The parent may have ended before the call. */
		if (getppid() != parent)
			_exit(1);
	}
	return child;
}

bool await_child(pid_t pid, const _Atomic unsigned *word, unsigned count)
{
	while (atomic_load(word) < count) {
		siginfo_t ended = {0};
		if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
		    ended.si_pid == pid) {
			errno = 0;
			return fault("a child ended before it was ready");
		}
		usleep(1000);
	}
	return true;
}

bool reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return fault("wait for a child");
	return (WIFEXITED(status) && WEXITSTATUS(status) == 0) || fault("a child's end");
}

bool end_child(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) == pid || fault("wait for a child");
}

bool write_all(int fd, const void *data, size_t size)
{
	const unsigned char *at = data;

	while (size > 0) {
		const ssize_t put = write(fd, at, size);
		if (put <= 0)
			return false;
		at += put;
		size -= (size_t)put;
	}
	return true;
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

void pattern(void *data, size_t size, unsigned seed)
{
	unsigned char *bytes_of = data;

	for (size_t i = 0; i < size; i++)
		bytes_of[i] = (unsigned char)(i * 7 + (i >> 8) + seed);
}

void *shared_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED) {
		fault("map shared memory");
		_exit(1);
	}
	return memory;
}

uint64_t checksum(const void *data, size_t size)
{
	const unsigned char *at = data;
	uint64_t hash = 14695981039346656037u;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ at[i]) * 1099511628211u;
	return hash;
}

bool damaged(void)
{
	static int asked = -1;

	/* Looked up once, because measured loops call this. */
	if (asked < 0) {
		const char *named = getenv("SUITE_DAMAGE");
		asked = named != NULL && *named != '\0';
	}
	return asked;
}

bool latencies_expect(unsigned long operations)
{
	latency_capacity = operations;
	latencies = calloc(operations, sizeof(*latencies));
	if (latencies == NULL)
		return fault("memory for latencies");
	/* Touched now, so that no page fault is measured. */
	memset(latencies, 0xff, operations * sizeof(*latencies));
	return true;
}

void latency_note(uint64_t nanoseconds)
{
	if (latency_count < latency_capacity)
		latencies[latency_count++] = nanoseconds;
}

void moved_bytes(uint64_t count)
{
	bytes = count;
}

void operations_done(unsigned long operations)
{
	done = operations;
}

static int ascending(const void *one, const void *two)
{
	const uint64_t a = *(const uint64_t *)one;
	const uint64_t b = *(const uint64_t *)two;

	return (a > b) - (a < b);
}

/* By nearest rank: the smallest latency that this share of all does not exceed. */
static uint64_t percentile(unsigned share)
{
	const unsigned long rank = (latency_count * share + 99) / 100;

	return latencies[rank > 0 ? rank - 1 : 0];
}

static void print_latencies(void)
{
	uint64_t sum = 0;

	if (latency_count == 0)
		return;
	qsort(latencies, latency_count, sizeof(*latencies), ascending);
	for (unsigned long i = 0; i < latency_count; i++)
		sum += latencies[i];
	printf(" p1_ns=%" PRIu64 " p50_ns=%" PRIu64 " p90_ns=%" PRIu64 " p99_ns=%" PRIu64
	       " mean_ns=%" PRIu64,
	       percentile(1), percentile(50), percentile(90), percentile(99), sum / latency_count);
}

void settle(void)
{
	usleep(SETTLE_MS * 1000);
}

void case_begin(const char *name, unsigned long operations)
{
	running = name;
	done = operations;
}

int case_end(bool sound)
{
	sound = sound && !faulted;
	if (sound && measured != 1)
		sound = fault("the case was not measured once");
	printf("case=%s operations=%lu elapsed_ns=%" PRIu64, running, done, elapsed);
	if (bytes > 0)
		printf(" bytes=%" PRIu64, bytes);
	print_latencies();
	printf(" check=%s\n", sound ? "ok" : "failed");
	fflush(stdout);
	return sound ? 0 : 1;
}
