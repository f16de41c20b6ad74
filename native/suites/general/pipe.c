/* Pipes and FIFOs: alone, in chains of processes, and with many writers. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "general.h"

#define STAGES 4
#define WRITERS 5
#define MESSAGES 24
#define RECORD 72

static unsigned char data[40000];
static unsigned char back[40000];

/* Messages of uneven sizes that stay in the pipe for a while, some of them in vectors. */
static bool alone(unsigned round)
{
	int ends[2];
	int queued = 0;

	TRY(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0, "pipe2");
	TRY(read(ends[0], back, 1) == -1 && errno == EAGAIN, "an empty pipe");
	for (unsigned i = 0; i < 20; i++) {
		const size_t size = 3 + (i * 911 + round * 37) % 5000;
		const struct iovec parts[3] = {{data, 3}, {data + 3, size / 2}, {data + 3 + size / 2, size - size / 2}};
		TRY(writev(ends[1], parts, 3) == (ssize_t)(size + 3), "writev to a pipe");
		TRY(ioctl(ends[0], FIONREAD, &queued) == 0 && queued == (int)size + 3, "FIONREAD");
		const struct iovec into[2] = {{back, size}, {back + size, 3}};
		TRY(readv(ends[0], into, 2) == (ssize_t)(size + 3) && same(data, back, size + 3),
		    "contents of a pipe");
	}
	/* Until it is full, then with three times the space: it has 16 pages. */
	const int larger = (int)(49 * PAGE);
	size_t filled = 0;
	for (ssize_t put; (put = write(ends[1], data, 3000)) > 0;)
		filled += (size_t)put;
	struct pollfd poller = {.fd = ends[1], .events = POLLOUT};
	TRY(errno == EAGAIN && poll(&poller, 1, 0) == 0, "a full pipe");
	TRY(fcntl(ends[1], F_SETPIPE_SZ, larger) >= larger && fcntl(ends[0], F_GETPIPE_SZ) >= larger,
	    "a larger pipe");
	TRY(poll(&poller, 1, 0) == 1 && write(ends[1], data, 20000) == 20000, "a larger pipe");
	filled += 20000;
	for (ssize_t got; (got = read(ends[0], back, 7777)) > 0;)
		filled -= (size_t)got;
	TRY(filled == 0 && close(ends[0]) == 0 && write(ends[1], data, 1) == -1 && errno == EPIPE,
	    "a pipe without a reader");
	return close(ends[1]) == 0;
}

/* Packets keep their bounds. */
static bool packets(void)
{
	int ends[2];

	TRY(pipe2(ends, O_DIRECT) == 0, "a pipe of packets");
	for (size_t size = 10; size < 3000; size = size * 2 + 5)
		TRY(write(ends[1], data, size) == (ssize_t)size, "write a packet");
	for (size_t size = 10; size < 3000; size = size * 2 + 5)
		TRY(read(ends[0], back, 4000) == (ssize_t)size && same(data, back, size), "a packet");
	return close(ends[0]) == 0 && close(ends[1]) == 0;
}

/* A stage adds one to every byte, in pieces of its own size. */
static bool stage(int from, int to, size_t piece)
{
	for (ssize_t got; (got = read(from, back, piece)) != 0;) {
		if (got < 0)
			return false;
		for (ssize_t i = 0; i < got; i++)
			back[i]++;
		if (!write_all(to, back, (size_t)got))
			return false;
	}
	return true;
}

/* As a shell's pipeline: every process reads what the one before it writes. */
static bool chain(unsigned round)
{
	int from;
	int first[2];
	pid_t children[STAGES];
	const size_t size = 20000 + 1700 * (round % 8);

	TRY(pipe(first) == 0, "pipe");
	from = first[0];
	for (unsigned i = 0; i < STAGES; i++) {
		int next[2];
		TRY(pipe(next) == 0, "pipe");
		children[i] = fork_child();
		if (children[i] == 0) {
			close(first[1]);
			close(next[0]);
			leave(stage(from, next[1], 600 + 900 * i));
		}
		TRY(children[i] > 0 && close(from) == 0 && close(next[1]) == 0, "a stage");
		from = next[0];
	}
	const pid_t writer = fork_child();
	if (writer == 0) {
		close(from);
		for (size_t at = 0; at < size; at += 2500)
			if (!write_all(first[1], data + at, size - at < 2500 ? size - at : 2500))
				leave(false);
		leave(true);
	}
	TRY(writer > 0 && close(first[1]) == 0 && read_all(from, back, size), "read from a chain");
	TRY(read(from, &children, 1) == 0 && close(from) == 0 && reap(writer), "the end of a chain");
	for (size_t i = 0; i < size; i += 97)
		TRY(back[i] == (unsigned char)(data[i] + STAGES + damaged()), "what a chain made");
	for (unsigned i = 0; i < STAGES; i++)
		TRY(waitpid(-1, NULL, 0) > 0, "a stage's end");
	return true;
}

/* Several writers into one FIFO; records are whole because they are small. */
static bool gathered(void)
{
	unsigned char record[RECORD];
	unsigned counts[WRITERS] = {0};
	pid_t writers[WRITERS];

	TRY(mkfifo("fifo", 0600) == 0, "mkfifo");
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = fork_child();
		if (writers[i] != 0)
			continue;
		const int to = open("fifo", O_WRONLY);
		memset(record, (int)i, sizeof(record));
		bool sound = to >= 0;
		for (unsigned n = 0; sound && n < MESSAGES; n++) {
			sound = write(to, record, sizeof(record)) == RECORD;
			if (n % 6 == i)
				sched_yield();
		}
		leave(sound);
	}
	const int from = open("fifo", O_RDONLY);
	TRY(from >= 0, "open a FIFO");
	while (read_all(from, record, sizeof(record))) {
		TRY(record[0] < WRITERS && record[0] == record[RECORD - 1], "a record in a FIFO");
		counts[record[0]]++;
	}
	for (unsigned i = 0; i < WRITERS; i++)
		TRY(reap(writers[i]), "a writer's end");
	/* One that opened later than all others had closed would have got an end of file. */
	unsigned sum = 0;
	for (unsigned i = 0; i < WRITERS; i++)
		sum += counts[i];
	TRY(sum > 0 && sum % MESSAGES == 0, "the records of a FIFO");
	return close(from) == 0 && unlink("fifo") == 0;
}

bool pipes(unsigned rounds)
{
	pattern(data, sizeof(data), 21);
	for (unsigned round = 0; round < rounds; round++)
		if (!alone(round) || !packets() || !chain(round) || !gathered())
			return false;
	return true;
}
