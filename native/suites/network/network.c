/*
 * network: TCP between two processes, like neper's tcp_rr and tcp_stream: requests and responses of
 * one byte, each sent when the previous one is answered, with 1 and 8 flows that an epoll loop
 * serves; and a stream in writes of 16 KiB. Over the loopback device, and over a cable between two
 * network namespaces.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "network.h"
#include "../case.h"

#define PORT 12865
#define MAX_FLOWS 8
#define BLOCK 16384
/* Seed of a block's contents. */
#define PATTERN 9

const char suite_name[] = "network";

/* In shared memory: 1 when the server listens. */
static _Atomic unsigned *listening;
static struct topology topology;

/* Operations before those that are measured. */
static unsigned long warming(unsigned long operations)
{
	return operations / 10 + 1;
}

static bool at_once(int connection)
{
	const int yes = 1;

	return setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0 ||
	       fault("TCP_NODELAY");
}

static struct sockaddr_in server_address(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};

	inet_pton(AF_INET, topology.server_address, &address.sin_addr);
	return address;
}

/* Accept that many connections; the client makes them before it sends. */
static bool accept_all(int *connections, unsigned count)
{
	const struct sockaddr_in address = server_address();
	const int yes = 1;
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
	    bind(listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(listener, MAX_FLOWS) != 0)
		return fault("listen");
	atomic_store(listening, 1);
	for (unsigned i = 0; i < count; i++) {
		connections[i] = accept(listener, NULL, NULL);
		if (connections[i] < 0 || !at_once(connections[i]))
			return fault("accept");
	}
	close(listener);
	return true;
}

static bool connect_all(int *connections, unsigned count)
{
	const struct sockaddr_in address = server_address();

	for (unsigned i = 0; i < count; i++) {
		connections[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connections[i] < 0 ||
		    connect(connections[i], (const struct sockaddr *)&address, sizeof(address)) != 0 ||
		    !at_once(connections[i]))
			return fault("connect");
	}
	return true;
}

static int watch(const int *connections, unsigned count)
{
	const int loop = epoll_create1(EPOLL_CLOEXEC);

	if (loop < 0)
		unsupported("CONFIG_EPOLL");
	for (unsigned i = 0; i < count; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
		if (epoll_ctl(loop, EPOLL_CTL_ADD, connections[i], &event) != 0)
			return -1;
	}
	return loop;
}

/* The server of requests: returns every byte inverted, until all flows are closed. */
static bool respond(unsigned flows)
{
	int connections[MAX_FLOWS];
	struct epoll_event events[MAX_FLOWS];
	unsigned open_flows = flows;

	if (!accept_all(connections, flows))
		return false;
	const int loop = watch(connections, flows);
	while (loop >= 0 && open_flows > 0) {
		const int ready = epoll_wait(loop, events, MAX_FLOWS, -1);
		if (ready <= 0)
			return fault("wait for requests");
		for (int i = 0; i < ready; i++) {
			unsigned char byte;
			const int connection = connections[events[i].data.u32];
			const ssize_t got = read(connection, &byte, 1);
			if (got < 0)
				return fault("read a request");
			if (got == 0) {
				close(connection);
				open_flows--;
				continue;
			}
			byte = damaged() ? byte : (unsigned char)~byte;
			if (write(connection, &byte, 1) != 1)
				return fault("write a response");
		}
	}
	return loop >= 0;
}

/* Every flow has one request under way, until as many as requested are answered. */
static bool transact(int loop, const int *connections, unsigned flows, unsigned long count)
{
	unsigned char sent[MAX_FLOWS];
	uint64_t since[MAX_FLOWS];
	struct epoll_event events[MAX_FLOWS];
	unsigned long begun = 0;
	unsigned long ended = 0;

	for (; begun < flows && begun < count; begun++) {
		sent[begun] = (unsigned char)begun;
		since[begun] = now_ns();
		if (write(connections[begun], &sent[begun], 1) != 1)
			return fault("write a request");
	}
	while (ended < count) {
		const int ready = epoll_wait(loop, events, MAX_FLOWS, -1);
		if (ready <= 0)
			return fault("wait for responses");
		for (int i = 0; i < ready; i++) {
			const unsigned flow = events[i].data.u32;
			unsigned char byte;
			if (read(connections[flow], &byte, 1) != 1)
				return fault("read a response");
			latency_note(now_ns() - since[flow]);
			if (byte != (unsigned char)~sent[flow])
				return fault("contents of a response");
			ended++;
			if (begun == count)
				continue;
			sent[flow] = (unsigned char)begun++;
			since[flow] = now_ns();
			if (write(connections[flow], &sent[flow], 1) != 1)
				return fault("write a request");
		}
	}
	return true;
}

static bool request_all(unsigned flows, unsigned long operations)
{
	int connections[MAX_FLOWS];

	if (!latencies_expect(operations) || !connect_all(connections, flows))
		return false;
	const int loop = watch(connections, flows);
	if (loop < 0)
		return fault("watch the connections");
	bool sound = transact(loop, connections, flows, warming(operations));
	if (sound) {
		measure_begin();
		sound = transact(loop, connections, flows, operations);
		measure_end();
	}
	for (unsigned i = 0; i < flows; i++)
		close(connections[i]);
	return sound;
}

/* Receive so many bytes of a stream of blocks, and acknowledge them. */
static bool receive_bytes(int connection, const unsigned char *block, uint64_t bytes)
{
	static unsigned char data[BLOCK];

	for (uint64_t received = 0; received < bytes;) {
		const uint64_t left = bytes - received;
		const ssize_t got =
			read(connection, data, left < sizeof(data) ? (size_t)left : sizeof(data));
		if (got <= 0)
			return fault("read a stream");
		/* Checks the ends of what came: checking everything would outweigh the kernel. */
		const uint64_t last = received + (uint64_t)got - 1;
		if (data[0] != block[received % BLOCK] + damaged() ||
		    data[got - 1] != block[last % BLOCK])
			return fault("contents of a stream");
		received = last + 1;
	}
	return write(connection, "", 1) == 1 || fault("say that a stream has come");
}

/* The receiver of a stream, which must end when everything has arrived. */
static bool receive_stream(unsigned long operations)
{
	static unsigned char block[BLOCK];
	int connection;
	char more;

	pattern(block, sizeof(block), PATTERN);
	return accept_all(&connection, 1) &&
	       receive_bytes(connection, block, (uint64_t)warming(operations) * BLOCK) &&
	       receive_bytes(connection, block, (uint64_t)operations * BLOCK) &&
	       (read(connection, &more, 1) == 0 || fault("the end of a stream"));
}

/* Wait until the other side has everything: buffered is not transferred. */
static bool send_blocks(int connection, const unsigned char *block, unsigned long count)
{
	char all;

	for (unsigned long i = 0; i < count; i++)
		if (!write_all(connection, block, BLOCK))
			return fault("write a stream");
	return read_all(connection, &all, 1) || fault("wait for a stream's receiver");
}

static bool send_stream(unsigned long operations)
{
	static unsigned char block[BLOCK];
	int connection;

	pattern(block, sizeof(block), PATTERN);
	if (!connect_all(&connection, 1) || !send_blocks(connection, block, warming(operations)))
		return false;
	measure_begin();
	const bool sound = send_blocks(connection, block, operations);
	measure_end();
	close(connection);
	moved_bytes((uint64_t)operations * BLOCK);
	return sound;
}

/* The server is a process of its own, in its own namespace. */
static bool measure(const struct suite_case *is, unsigned long operations, bool streams)
{
	listening = shared_memory(sizeof(*listening));
	const pid_t child = fork_child();

	if (child < 0)
		return false;
	if (child == 0)
		leave(enter(topology.server_namespace) &&
		      (streams ? receive_stream(operations) : respond(is->concurrency)));
	return await_child(child, listening, 1) &&
	       (streams ? send_stream(operations) : request_all(is->concurrency, operations)) &&
	       reap(child);
}

static bool rr_loopback(const struct suite_case *is, unsigned long operations)
{
	return topology_loopback(&topology) && measure(is, operations, false);
}

static bool rr_veth(const struct suite_case *is, unsigned long operations)
{
	return topology_cable(&topology) && measure(is, operations, false);
}

static bool stream_loopback(const struct suite_case *is, unsigned long operations)
{
	return topology_loopback(&topology) && measure(is, operations, true);
}

static bool stream_veth(const struct suite_case *is, unsigned long operations)
{
	return topology_cable(&topology) && measure(is, operations, true);
}

const struct suite_case suite_cases[] = {
	{"rr-loopback-1", 2000, 1, 1, rr_loopback},
	{"rr-loopback-8", 2000, 1, 8, rr_loopback},
	{"rr-veth-1", 2000, 1, 1, rr_veth},
	{"rr-veth-8", 2000, 1, 8, rr_veth},
	{"stream-loopback", 1000, BLOCK, 1, stream_loopback},
	{"stream-veth", 1000, BLOCK, 1, stream_veth},
};
const size_t suite_case_count = sizeof(suite_cases) / sizeof(suite_cases[0]);
