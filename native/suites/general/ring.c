/* Input and output by queues: io_uring, and the older interface of AIO. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "general.h"

#define DEPTH 16
#define BLOCK 3000

static unsigned char data[DEPTH * BLOCK];
static unsigned char back[DEPTH * BLOCK];

struct ring {
	int fd;
	unsigned char *queues;
	size_t size;
	struct io_uring_sqe *entries;
	struct io_uring_params about;
	unsigned queued;
};

static _Atomic uint32_t *word(const struct ring *ring, uint32_t at)
{
	return (_Atomic uint32_t *)(ring->queues + at);
}

static bool open_ring(struct ring *ring)
{
	memset(ring, 0, sizeof(*ring));
	ring->fd = (int)syscall(SYS_io_uring_setup, DEPTH, &ring->about);
	if (ring->fd < 0)
		return false;
	const size_t submissions = ring->about.sq_off.array + ring->about.sq_entries * sizeof(uint32_t);
	const size_t completions =
		ring->about.cq_off.cqes + ring->about.cq_entries * sizeof(struct io_uring_cqe);
	ring->size = submissions > completions ? submissions : completions;
	ring->queues = mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd,
			    IORING_OFF_SQ_RING);
	ring->entries = mmap(NULL, ring->about.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQES);
	return ring->queues != MAP_FAILED && ring->entries != MAP_FAILED;
}

static bool close_ring(struct ring *ring)
{
	return munmap(ring->entries, ring->about.sq_entries * sizeof(struct io_uring_sqe)) == 0 &&
	       munmap(ring->queues, ring->size) == 0 && close(ring->fd) == 0;
}

/* The next entry, which the next call of finish() submits. */
static struct io_uring_sqe *next(struct ring *ring, unsigned char operation, int fd, const void *address,
				 size_t size, uint64_t offset)
{
	const uint32_t tail = atomic_load(word(ring, ring->about.sq_off.tail));
	const uint32_t at = tail & atomic_load(word(ring, ring->about.sq_off.ring_mask));
	struct io_uring_sqe *entry = &ring->entries[at];

	memset(entry, 0, sizeof(*entry));
	entry->opcode = operation;
	entry->fd = fd;
	entry->addr = (uint64_t)(uintptr_t)address;
	entry->len = (uint32_t)size;
	entry->off = offset;
	entry->user_data = ring->queued;
	atomic_store(word(ring, ring->about.sq_off.array) + at, at);
	atomic_store(word(ring, ring->about.sq_off.tail), tail + 1);
	ring->queued++;
	return entry;
}

/* Submit all, wait for all, and give their results by their order. */
static bool finish(struct ring *ring, int32_t *results)
{
	const unsigned count = ring->queued;

	ring->queued = 0;
	for (long done = 0; done < (long)count;) {
		const long submitted = syscall(SYS_io_uring_enter, ring->fd, (unsigned)(count - (unsigned)done),
					       count, IORING_ENTER_GETEVENTS, NULL, 0);
		TRY(submitted >= 0, "io_uring_enter");
		done += submitted;
	}
	for (unsigned i = 0; i < count; i++) {
		const uint32_t head = atomic_load(word(ring, ring->about.cq_off.head));
		while (head == atomic_load(word(ring, ring->about.cq_off.tail)))
			TRY(syscall(SYS_io_uring_enter, ring->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) >= 0,
			    "wait for a completion");
		const struct io_uring_cqe *completions =
			(const struct io_uring_cqe *)(ring->queues + ring->about.cq_off.cqes);
		const struct io_uring_cqe *got =
			&completions[head & atomic_load(word(ring, ring->about.cq_off.ring_mask))];
		TRY(got->user_data < count, "a completion");
		results[got->user_data] = got->res;
		atomic_store(word(ring, ring->about.cq_off.head), head + 1);
	}
	return true;
}

/* Files and sockets by batches, with some entries that follow each other, and time limits. */
static bool by_ring(unsigned round)
{
	struct ring ring;
	int32_t results[DEPTH];
	int pair[2];
	const struct __kernel_timespec moment = {.tv_nsec = 30000};

	if (!open_ring(&ring))
		return lacks("CONFIG_IO_URING");
	const int fd = open("ring", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	TRY(fd >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "descriptors");
	for (unsigned pass = 0; pass < 4; pass++) {
		for (unsigned i = 0; i < DEPTH; i++)
			next(&ring, IORING_OP_WRITE, fd, data + (i + pass) % 9 * BLOCK, BLOCK, i * BLOCK);
		if (!finish(&ring, results))
			return false;
		for (unsigned i = 0; i < DEPTH; i++)
			TRY(results[i] == BLOCK, "a write of a ring");
		next(&ring, IORING_OP_FSYNC, fd, NULL, 0, 0)->flags |= IOSQE_IO_LINK;
		for (unsigned i = 0; i < DEPTH - 1; i++)
			next(&ring, IORING_OP_READ, fd, back + i * BLOCK, BLOCK, i * BLOCK);
		if (!finish(&ring, results))
			return false;
		for (unsigned i = 0; i < DEPTH - 1; i++)
			TRY(results[i + 1] == BLOCK && same(back + i * BLOCK, data + (i + pass) % 9 * BLOCK, BLOCK),
			    "a read of a ring");
		/* The receiver waits first; polls and a timeout go with it. */
		next(&ring, IORING_OP_RECV, pair[1], back, 700 + round, 0);
		next(&ring, IORING_OP_POLL_ADD, pair[0], NULL, 0, 0)->poll_events = 4 /* POLLOUT */;
		next(&ring, IORING_OP_TIMEOUT, -1, &moment, 1, 0);
		next(&ring, IORING_OP_SEND, pair[0], data, 700 + round, 0);
		next(&ring, IORING_OP_NOP, -1, NULL, 0, 0);
		if (!finish(&ring, results))
			return false;
		TRY(results[0] == (int32_t)(700 + round) && results[3] == results[0] && same(back, data, 700 + round),
		    "a message of a ring");
	}
	TRY(close(pair[0]) == 0 && close(pair[1]) == 0 && close(fd) == 0 && unlink("ring") == 0, "close");
	return close_ring(&ring) || fault("close a ring");
}

static bool by_aio(void)
{
	aio_context_t context = 0;
	struct iocb blocks[DEPTH];
	struct iocb *list[DEPTH];
	struct io_event events[DEPTH];

	if (syscall(SYS_io_setup, DEPTH, &context) != 0)
		return lacks("CONFIG_AIO");
	const int fd = open("aio", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	TRY(fd >= 0, "open");
	for (unsigned pass = 0; pass < 6; pass++) {
		for (unsigned i = 0; i < DEPTH; i++) {
			unsigned char *buffer = pass % 2 ? back : data;
			blocks[i] = (struct iocb){
				.aio_lio_opcode = pass % 2 ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE,
				.aio_fildes = (uint32_t)fd,
				.aio_buf = (uint64_t)(uintptr_t)(buffer + i * BLOCK),
				.aio_nbytes = BLOCK,
				.aio_offset = i * BLOCK,
				.aio_data = i,
			};
			list[i] = &blocks[i];
		}
		TRY(syscall(SYS_io_submit, context, DEPTH, list) == DEPTH, "io_submit");
		TRY(syscall(SYS_io_getevents, context, DEPTH, DEPTH, events, NULL) == DEPTH, "io_getevents");
		for (unsigned i = 0; i < DEPTH; i++)
			TRY(events[i].res == BLOCK, "an event of AIO");
	}
	TRY(same(data, back, sizeof(data)), "contents by AIO");
	return syscall(SYS_io_destroy, context) == 0 && close(fd) == 0 && unlink("aio") == 0;
}

bool rings(unsigned rounds)
{
	pattern(data, sizeof(data), 41);
	for (unsigned round = 0; round < rounds; round++)
		if (!by_ring(round) || !by_aio())
			return false;
	return true;
}
