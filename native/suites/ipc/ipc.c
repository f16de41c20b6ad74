/*
 * ipc: a message of 4 or 124 bytes to another process and its answer, over each transport that
 * Linux has for that. An operation is a round trip.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../binder_link.h"
#include "../case.h"

#define MOST 124

const char suite_name[] = "ipc";

/*
 * A channel to the other process. Both ends send and receive whole messages; the parent is end 0
 * and sends first.
 */
struct transport {
	bool (*send)(unsigned end, const void *message, size_t size);
	bool (*receive)(unsigned end, void *message, size_t size);
};

static int to_child[2];
static int to_parent[2];

/* The answer to a message, computed from it. */
static void answer(uint32_t *message, size_t size)
{
	message[0] = damaged() ? message[0] : ~message[0];
	if (size > sizeof(*message))
		message[size / sizeof(*message) - 1] ^= message[0];
}

static bool echo(const struct transport *over, size_t size, unsigned long trips)
{
	uint32_t message[MOST / sizeof(uint32_t) + 1] = {0};

	for (unsigned long i = 0; i < trips; i++) {
		if (!over->receive(1, message, size))
			return fault("receive a message");
		answer(message, size);
		if (!over->send(1, message, size))
			return fault("send an answer");
	}
	return true;
}

static bool ping(const struct transport *over, size_t size, unsigned long trips)
{
	uint32_t message[MOST / sizeof(uint32_t) + 1];
	const size_t last = size / sizeof(*message) - 1;

	pattern(message, size, 3);
	for (unsigned long i = 0; i < trips; i++) {
		message[0] = (uint32_t)i;
		const uint32_t before = message[last];
		if (!over->send(0, message, size))
			return fault("send a message");
		if (!over->receive(0, message, size))
			return fault("receive an answer");
		if (message[0] != ~(uint32_t)i || (last > 0 && message[last] != (before ^ message[0])))
			return fault("contents of an answer");
	}
	return true;
}

static bool measure(const struct transport *over, size_t size, unsigned long operations)
{
	const unsigned long warm = operations / 10 + 1;
	const pid_t child = fork_child();

	if (child < 0)
		return false;
	if (child == 0) {
		close(to_child[1]);
		close(to_parent[0]);
		leave(echo(over, size, warm + operations + 1));
	}
	/* Otherwise the end of a child that failed would go unnoticed. */
	close(to_child[0]);
	close(to_parent[1]);
	if (!ping(over, size, warm))
		return false;
	measure_begin();
	const bool sound = ping(over, size, operations);
	measure_end();
	/* The child stays until this message, so that its exit is not measured. */
	return sound && ping(over, size, 1) && reap(child);
}

/* pipe and unix: bytes through descriptors, one for each direction. */

static bool send_bytes(unsigned end, const void *message, size_t size)
{
	return write_all(end == 0 ? to_child[1] : to_parent[1], message, size);
}

static bool receive_bytes(unsigned end, void *message, size_t size)
{
	return read_all(end == 0 ? to_parent[0] : to_child[0], message, size);
}

static const struct transport bytes_transport = {send_bytes, receive_bytes};

static bool run_pipe(const struct suite_case *is, unsigned long operations)
{
	if (pipe(to_child) != 0 || pipe(to_parent) != 0)
		return fault("pipe");
	return measure(&bytes_transport, is->size, operations);
}

static bool run_unix(const struct suite_case *is, unsigned long operations)
{
	int ends[2];

	/* One stream for both directions; each end has a descriptor to read and one to write. */
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		unsupported("CONFIG_UNIX");
	to_child[1] = ends[0];
	to_parent[0] = dup(ends[0]);
	to_child[0] = ends[1];
	to_parent[1] = dup(ends[1]);
	if (to_parent[0] < 0 || to_parent[1] < 0)
		return fault("dup");
	return measure(&bytes_transport, is->size, operations);
}

/* futex and eventfd: the message is in shared memory, and the kernel only wakes. */

struct slot {
	_Atomic uint32_t full;
	unsigned char message[MOST];
};

static struct slot *slots; /* [0] to the child, [1] to the parent */

static long futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
	return syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static bool futex_send(unsigned end, const void *message, size_t size)
{
	struct slot *slot = &slots[end];

	memcpy(slot->message, message, size);
	atomic_store(&slot->full, 1);
	return futex(&slot->full, FUTEX_WAKE, INT_MAX) >= 0;
}

static bool futex_receive(unsigned end, void *message, size_t size)
{
	struct slot *slot = &slots[1 - end];

	/* Woken spuriously, or too late to sleep: only the word decides. */
	while (atomic_load(&slot->full) == 0)
		futex(&slot->full, FUTEX_WAIT, 0);
	memcpy(message, slot->message, size);
	atomic_store(&slot->full, 0);
	return true;
}

static const struct transport futex_transport = {futex_send, futex_receive};

static void no_descriptors(void)
{
	to_child[0] = to_child[1] = to_parent[0] = to_parent[1] = -1;
}

static bool run_futex(const struct suite_case *is, unsigned long operations)
{
	no_descriptors();
	slots = shared_memory(2 * sizeof(*slots));
	return measure(&futex_transport, is->size, operations);
}

static int events[2];

static bool event_send(unsigned end, const void *message, size_t size)
{
	const uint64_t one = 1;

	memcpy(slots[end].message, message, size);
	return write(events[end], &one, sizeof(one)) == sizeof(one);
}

static bool event_receive(unsigned end, void *message, size_t size)
{
	uint64_t count;

	if (read(events[1 - end], &count, sizeof(count)) != sizeof(count) || count != 1)
		return false;
	memcpy(message, slots[1 - end].message, size);
	return true;
}

static const struct transport event_transport = {event_send, event_receive};

static bool run_eventfd(const struct suite_case *is, unsigned long operations)
{
	no_descriptors();
	slots = shared_memory(2 * sizeof(*slots));
	for (int i = 0; i < 2; i++) {
		events[i] = eventfd(0, 0);
		if (events[i] < 0)
			unsupported("CONFIG_EVENTFD");
	}
	return measure(&event_transport, is->size, operations);
}

/* binder: the call waits for its reply in the same call into the driver. */

static bool service(uint32_t code, const void *request, size_t size, void *reply,
		    size_t *reply_size)
{
	(void)code;
	memcpy(reply, request, size);
	answer(reply, size);
	*reply_size = size;
	return true;
}

static int client = -1;
static uint32_t held[MOST / sizeof(uint32_t) + 1];

static bool call(unsigned end, const void *message, size_t size)
{
	(void)end;
	return binder_call(client, 1, message, size, held, size);
}

static bool take(unsigned end, void *message, size_t size)
{
	(void)end;
	memcpy(message, held, size);
	return true;
}

static const struct transport binder_transport = {call, take};

static bool run_binder(const struct suite_case *is, unsigned long operations)
{
	_Atomic unsigned *ready = shared_memory(sizeof(*ready));

	close(binder_open());
	const pid_t server = fork_child();
	if (server < 0)
		return false;
	if (server == 0) {
		const int device = binder_open();
		if (!binder_map(device) || !binder_become_manager(device))
			leave(false);
		atomic_store(ready, 1);
		leave(binder_serve(device, service));
	}
	if (!await_child(server, ready, 1))
		return false;
	client = binder_open();
	if (!binder_map(client) || !ping(&binder_transport, is->size, operations / 10 + 1))
		return false;
	measure_begin();
	const bool sound = ping(&binder_transport, is->size, operations);
	measure_end();
	return end_child(server) && sound;
}

#define TRIPS 16384
#define BOTH(name, run)                              \
	{name "-4", TRIPS, 4, 1, run}, {                 \
		name "-124", TRIPS, 124, 1, run              \
	}

const struct suite_case suite_cases[] = {
	BOTH("pipe", run_pipe),       BOTH("unix", run_unix),     BOTH("futex", run_futex),
	BOTH("eventfd", run_eventfd), BOTH("binder", run_binder),
};
const size_t suite_case_count = sizeof(suite_cases) / sizeof(suite_cases[0]);
