/*
 * binder: calls to a server in another process, from 1 and 4 client threads to as many server
 * threads, directly on the driver. An operation is a call and its reply.
 */
#define _GNU_SOURCE
#include "../binder_link.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "../case.h"

#define MOST_THREADS 4
#define LONGEST 4096

const char suite_name[] = "binder";

enum call { ECHO = 1, ADD_INTS, PING, REPEAT, LENGTH };

/* In shared memory: how many threads serve, and how many calls they have answered. */
struct server {
	_Atomic unsigned ready;
	_Atomic unsigned long answered;
};

static struct server *server;
static int device = -1;

static bool service(uint32_t code, const void *request, size_t size, void *reply,
		    size_t *reply_size)
{
	const int32_t *numbers = request;
	int32_t number;

	atomic_fetch_add_explicit(&server->answered, 1, memory_order_relaxed);
	switch (code) {
	case ECHO:
		memcpy(reply, request, size);
		*(uint32_t *)reply = ~*(uint32_t *)reply;
		*reply_size = size;
		break;
	case ADD_INTS:
		number = numbers[0] + numbers[1];
		memcpy(reply, &number, sizeof(number));
		*reply_size = sizeof(number);
		break;
	case PING:
		*reply_size = 0;
		break;
	case REPEAT:
		memcpy(reply, request, size);
		*reply_size = size;
		break;
	case LENGTH:
		number = (int32_t)size;
		memcpy(reply, &number, sizeof(number));
		*reply_size = sizeof(number);
		break;
	default:
		return false;
	}
	return true;
}

/* A thread that fails ends the process, and the driver notifies all that wait for it. */
static void *serve(void *nothing)
{
	(void)nothing;
	atomic_fetch_add(&server->ready, 1);
	leave(binder_serve(device, service));
}

/* In the child: as many threads as there will be clients. */
static _Noreturn void be_server(unsigned threads)
{
	pthread_t thread;

	device = binder_open();
	if (!binder_map(device) || !binder_become_manager(device))
		leave(false);
	for (unsigned i = 1; i < threads; i++)
		if (pthread_create(&thread, NULL, serve, NULL) != 0)
			leave(fault("create a thread"));
	serve(NULL);
	leave(false);
}

struct client {
	pthread_t thread;
	const struct suite_case *is;
	unsigned long calls;
	unsigned number;
	bool sound;
	bool (*one)(const struct client *me, unsigned long i);
};

static bool echo(const struct client *me, unsigned long i)
{
	uint32_t request[32] = {(uint32_t)i ^ (me->number << 24)};
	uint32_t reply[32];
	const size_t size = me->is->size;

	request[size / sizeof(*request) - 1] += (uint32_t)i;
	if (!binder_call(device, ECHO, request, size, reply, size))
		return false;
	request[0] = damaged() ? request[0] : ~request[0];
	return memcmp(request, reply, size) == 0 || fault("contents of a reply");
}

static bool add_ints(const struct client *me, unsigned long i)
{
	const int32_t request[2] = {(int32_t)i, (int32_t)me->number * 1000 + 7};
	int32_t sum;

	if (!binder_call(device, ADD_INTS, request, sizeof(request), &sum, sizeof(sum)))
		return false;
	return sum == request[0] + request[1] + damaged() || fault("a sum");
}

/*
 * The requests, in turn: a ping without data, names and strings that come back, and a buffer of
 * which only the length comes back.
 */
static bool rpc(const struct client *me, unsigned long i)
{
	static const size_t sizes[] = {0, 16, 64, 256, 1024, LONGEST};
	static __thread unsigned char request[LONGEST];
	static __thread unsigned char reply[LONGEST];
	const size_t size = sizes[i % 6];
	int32_t length;

	request[0] = (unsigned char)(i + me->number);
	if (size == 0)
		return binder_call(device, PING, request, 0, NULL, 0);
	if (size == LONGEST) {
		if (!binder_call(device, LENGTH, request, size, &length, sizeof(length)))
			return false;
		return length == LONGEST + damaged() || fault("a length");
	}
	request[size - 1] = (unsigned char)i;
	if (!binder_call(device, REPEAT, request, size, reply, size))
		return false;
	return memcmp(request, reply, size) == 0 || fault("a repeated string");
}

static struct gate gate;

static void *call_all(void *argument)
{
	struct client *me = argument;

	/* The first calls create the driver's threads, nodes and buffers. */
	me->sound = true;
	for (unsigned long i = 0; me->sound && i < me->calls / 10 + 1; i++)
		me->sound = me->one(me, i);
	gate_begin(&gate);
	for (unsigned long i = 0; me->sound && i < me->calls; i++)
		me->sound = me->one(me, i);
	gate_end(&gate);
	return NULL;
}

static bool measure(const struct suite_case *is, unsigned long operations,
		    bool (*one)(const struct client *me, unsigned long i))
{
	struct client clients[MOST_THREADS];
	const unsigned threads = is->concurrency;
	const unsigned long share = (operations + threads - 1) / threads;

	server = shared_memory(sizeof(*server));
	close(binder_open());
	const pid_t child = fork_child();
	if (child < 0)
		return false;
	if (child == 0)
		be_server(threads);
	if (!await_child(child, &server->ready, threads))
		return false;
	device = binder_open();
	if (!binder_map(device))
		return false;
	bool sound = true;
	gate_init(&gate, threads, false);
	operations_done(share * threads);
	for (unsigned i = 0; i < threads; i++) {
		clients[i] = (struct client){.is = is, .calls = share, .number = i, .one = one};
		if (pthread_create(&clients[i].thread, NULL, call_all, &clients[i]) != 0)
			return fault("create a thread");
	}
	measure_gate(&gate);
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(clients[i].thread, NULL);
		sound = sound && clients[i].sound;
	}
	errno = 0;
	if (sound && atomic_load(&server->answered) != threads * (share + share / 10 + 1))
		sound = fault("the number of calls that the server answered");
	return end_child(child) && sound;
}

static bool run_echo(const struct suite_case *is, unsigned long operations)
{
	return measure(is, operations, echo);
}

static bool run_add_ints(const struct suite_case *is, unsigned long operations)
{
	return measure(is, operations, add_ints);
}

static bool run_rpc(const struct suite_case *is, unsigned long operations)
{
	return measure(is, operations, rpc);
}

const struct suite_case suite_cases[] = {
	{"echo-4-1", 4000, 4, 1, run_echo},     {"echo-4-4", 4000, 4, 4, run_echo},
	{"echo-124-1", 4000, 124, 1, run_echo}, {"echo-124-4", 4000, 124, 4, run_echo},
	{"rpc-1", 3000, 0, 1, run_rpc},         {"rpc-4", 3000, 0, 4, run_rpc},
	{"add-ints-1", 4000, 0, 1, run_add_ints}, {"add-ints-4", 4000, 0, 4, run_add_ints},
};
const size_t suite_case_count = sizeof(suite_cases) / sizeof(suite_cases[0]);
