/* TCP and UDP between processes. */
#define _GNU_SOURCE
#include "inet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "general.h"

#define SHORT 7
#define PARALLEL 5
#define MAX_MESSAGE 9000
#define CHUNK 48000

const struct site loopback = {.family = AF_INET, .address = "127.0.0.1"};
const struct site loopback6 = {.family = AF_INET6, .address = "::1"};

static unsigned char data[CHUNK + MAX_MESSAGE];
static unsigned char back[CHUNK + MAX_MESSAGE];

struct address {
	socklen_t size;
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	};
};

static struct address address_of(const struct site *site, in_port_t port)
{
	struct address address = {.size = sizeof(struct sockaddr_in)};

	if (site->family == AF_INET) {
		address.four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
		inet_pton(AF_INET, site->address, &address.four.sin_addr);
	} else {
		address.size = sizeof(struct sockaddr_in6);
		address.six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
		inet_pton(AF_INET6, site->address, &address.six.sin6_addr);
	}
	return address;
}

bool has_family(int family)
{
	const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		lacks(family == AF_INET ? "CONFIG_INET" : "CONFIG_IPV6");
		return false;
	}
	/* Present, but not up. */
	struct address address = address_of(family == AF_INET ? &loopback : &loopback6, 0);
	const bool up = bind(fd, &address.any, address.size) == 0;
	close(fd);
	if (!up)
		without(family == AF_INET ? "loopback" : "loopback-IPv6");
	return up;
}

/* A port that the kernel chose, in shared memory: 0 until the server is ready. */
struct meeting {
	_Atomic unsigned ready;
	in_port_t port;
};

static struct meeting *meeting;

static int socket_of(const struct site *site, int type)
{
	return socket(site->family, type | SOCK_CLOEXEC, 0);
}

static bool publish(int fd)
{
	struct address own = {.size = sizeof(own.six)};

	if (getsockname(fd, &own.any, &own.size) != 0)
		return fault("getsockname");
	meeting->port = own.any.sa_family == AF_INET ? own.four.sin_port : own.six.sin6_port;
	atomic_store(&meeting->ready, 1);
	return true;
}

static bool set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) == 0 || fault("setsockopt");
}

static int listen_at(const struct site *site)
{
	struct address address = address_of(site, 0);
	const int fd = socket_of(site, SOCK_STREAM);

	if (fd < 0 || !set(fd, SOL_SOCKET, SO_REUSEADDR, 1) ||
	    bind(fd, &address.any, address.size) != 0 || listen(fd, 16) != 0 || !publish(fd)) {
		fault("listen");
		return -1;
	}
	return fd;
}

/* A server's process, once it is ready. */
static pid_t start(const struct site *site, bool (*serve)(const struct site *site, size_t amount),
		   size_t amount)
{
	meeting = shared_memory(sizeof(*meeting));
	const pid_t server = fork_child();
	if (server == 0)
		leave((site->enter == NULL || site->enter()) && serve(site, amount));
	return server > 0 && await_child(server, &meeting->ready, 1) ? server : -1;
}

static int connect_to(const struct site *site)
{
	struct address address = address_of(site, meeting->port);
	const int fd = socket_of(site, SOCK_STREAM);

	if (fd >= 0 && connect(fd, &address.any, address.size) != 0) {
		fault("connect");
		close(fd);
		return -1;
	}
	return fd;
}

/* requests: a length of what is sent and a length of what is wanted, each as many bytes. */

struct request {
	uint16_t sent;
	uint16_t wanted;
};

static bool answer(int fd, bool *ended)
{
	struct request request;
	const ssize_t got = recv(fd, &request, sizeof(request), MSG_WAITALL);

	*ended = got == 0;
	if (got == 0)
		return true;
	if (got != sizeof(request) || request.sent > MAX_MESSAGE || request.wanted > MAX_MESSAGE ||
	    !read_all(fd, back, request.sent))
		return fault("read a request");
	if (!same(back, data + request.wanted, request.sent))
		return fault("contents of a request");
	return send(fd, data + request.sent, request.wanted, MSG_NOSIGNAL) == request.wanted ||
	       fault("send an answer");
}

/* Serves until so many connections have ended. */
static bool serve_requests(const struct site *site, size_t connections)
{
	struct epoll_event events[4];
	struct epoll_event event = {.events = EPOLLIN};
	const int loop = epoll_create1(EPOLL_CLOEXEC);
	const int listener = listen_at(site);

	event.data.fd = listener;
	if (listener < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event) != 0)
		return false;
	while (connections > 0) {
		const int ready = epoll_wait(loop, events, COUNT(events), -1);
		TRY(ready > 0, "wait for requests");
		for (int i = 0; i < ready; i++) {
			const int fd = events[i].data.fd;
			bool ended = false;
			if (fd == listener) {
				event.data.fd = accept(listener, NULL, NULL);
				event.events = EPOLLIN | EPOLLRDHUP;
				TRY(event.data.fd >= 0 && set(event.data.fd, IPPROTO_TCP, TCP_NODELAY, 1) &&
					    epoll_ctl(loop, EPOLL_CTL_ADD, event.data.fd, &event) == 0,
				    "accept");
				continue;
			}
			if (!answer(fd, &ended))
				return false;
			if (ended) {
				close(fd);
				connections--;
			}
		}
	}
	return close(listener) == 0 && close(loop) == 0;
}

static bool send_request(int fd, struct request request)
{
	const struct iovec parts[2] = {{&request, sizeof(request)}, {data + request.wanted, request.sent}};

	return writev(fd, parts, 2) == (ssize_t)(sizeof(request) + request.sent) || fault("send a request");
}

static bool take_answer(int fd, struct request request)
{
	TRY(read_all(fd, back, request.wanted), "read an answer");
	return same(back, data + request.sent, request.wanted) || fault("contents of an answer");
}

static struct request request_of(unsigned i)
{
	/* Mostly small; every ninth wants a page or two. */
	return (struct request){.sent = (uint16_t)(5 + i * 73 % 611),
				.wanted = (uint16_t)(i % 9 == 8 ? 5000 + i * 31 % 3000 : 11 + i * 131 % 1300)};
}

/* Connections for one request each, closed by a reset now and then. */
static bool ask_shortly(const struct site *site)
{
	const struct linger abort = {.l_onoff = 1, .l_linger = 0};

	for (unsigned i = 0; i < SHORT; i++) {
		const int fd = connect_to(site);
		if (fd < 0 || !send_request(fd, request_of(i)) || !take_answer(fd, request_of(i)))
			return false;
		if (i % 4 == 3)
			TRY(shutdown(fd, SHUT_WR) == 0 && recv(fd, back, 1, 0) == 0, "shutdown");
		else if (i % 4 == 5)
			TRY(setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)) == 0, "SO_LINGER");
		TRY(close(fd) == 0, "close");
	}
	return true;
}

/* One connection that is kept, with the options of a careful client. */
static bool ask_long(const struct site *site, unsigned requests)
{
	struct tcp_info info;
	socklen_t length = sizeof(info);
	const int fd = connect_to(site);

	if (fd < 0 || !set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) || !set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30) ||
	    !set(fd, SOL_SOCKET, SO_RCVBUF, 50000) || !set(fd, IPPROTO_TCP, TCP_NODELAY, 1))
		return false;
	for (unsigned i = 0; i < requests; i++) {
		if (i % 16 == 7 && !set(fd, IPPROTO_TCP, TCP_CORK, 1))
			return false;
		if (!send_request(fd, request_of(i + 3)))
			return false;
		if (i % 16 == 7 && !set(fd, IPPROTO_TCP, TCP_CORK, 0))
			return false;
		struct pollfd poller = {.fd = fd, .events = POLLIN};
		TRY(i % 3 || poll(&poller, 1, -1) == 1, "poll");
		if (!take_answer(fd, request_of(i + 3)))
			return false;
	}
	TRY(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_state == TCP_ESTABLISHED,
	    "TCP_INFO");
	return close(fd) == 0;
}

/* Several at once, without waiting for any of them. */
static bool ask_side_by_side(const struct site *site, unsigned requests)
{
	struct address address = address_of(site, meeting->port);
	struct pollfd pollers[PARALLEL];
	unsigned sent[PARALLEL];
	unsigned answered = 0;
	int error;
	socklen_t length = sizeof(error);

	for (unsigned i = 0; i < PARALLEL; i++) {
		const int fd = socket_of(site, SOCK_STREAM | SOCK_NONBLOCK);
		TRY(fd >= 0 && (connect(fd, &address.any, address.size) == 0 || errno == EINPROGRESS), "connect");
		pollers[i] = (struct pollfd){.fd = fd, .events = POLLOUT};
		sent[i] = i;
	}
	while (answered < requests) {
		TRY(poll(pollers, PARALLEL, -1) > 0, "poll connections");
		for (unsigned i = 0; i < PARALLEL; i++) {
			const int fd = pollers[i].fd;
			if (pollers[i].revents == 0)
				continue;
			if (pollers[i].events == POLLOUT) {
				TRY(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0,
				    "connect later");
				if (!send_request(fd, request_of(sent[i])))
					return false;
				pollers[i].events = POLLIN;
				continue;
			}
			TRY(fcntl(fd, F_SETFL, 0) == 0, "F_SETFL");
			if (!take_answer(fd, request_of(sent[i])))
				return false;
			TRY(fcntl(fd, F_SETFL, O_NONBLOCK) == 0, "F_SETFL");
			answered++;
			sent[i] += PARALLEL;
			pollers[i].events = POLLOUT;
		}
	}
	for (unsigned i = 0; i < PARALLEL; i++) {
		/* One that was asked and not heard. */
		TRY(fcntl(pollers[i].fd, F_SETFL, 0) == 0, "F_SETFL");
		if (pollers[i].events == POLLIN && !take_answer(pollers[i].fd, request_of(sent[i])))
			return false;
		TRY(close(pollers[i].fd) == 0, "close");
	}
	return true;
}

bool ask_over(const struct site *site, unsigned requests)
{
	pattern(data, sizeof(data), 31);
	const pid_t server = start(site, serve_requests, SHORT + 1 + PARALLEL);

	return server > 0 && ask_shortly(site) && ask_long(site, requests) &&
	       ask_side_by_side(site, requests) && reap(server);
}

bool tcp_requests(unsigned rounds)
{
	const bool six = has_family(AF_INET6);

	if (!has_family(AF_INET))
		return true;
	for (unsigned round = 0; round < rounds; round++)
		if (!ask_over(&loopback, 60) || (six && round % 2 == 0 && !ask_over(&loopback6, 30)))
			return false;
	return true;
}

/* streams: position p of the stream has the byte data[p % CHUNK]. */

/* Takes a stream in pieces of other sizes than it was sent in. */
static bool serve_stream(const struct site *site, size_t bytes)
{
	static const size_t pieces[] = {1900, 31000, 700, 48000};
	const int listener = listen_at(site);
	const int fd = listener < 0 ? -1 : accept(listener, NULL, NULL);

	TRY(fd >= 0, "accept");
	for (size_t at = 0, turn = 0; at < bytes; turn++) {
		const size_t wanted = pieces[turn % COUNT(pieces)];
		const int flags = turn % 7 == 3 ? MSG_WAITALL : 0;
		if (turn % 16 == 5)
			TRY(recv(fd, back, 100, MSG_PEEK) > 0 && back[0] == data[at % CHUNK], "MSG_PEEK");
		const ssize_t got = recv(fd, back, wanted < bytes - at ? wanted : bytes - at, flags);
		TRY(got > 0, "read a stream");
		TRY(back[0] == data[at % CHUNK] + damaged() &&
			    back[got - 1] == data[(at + (size_t)got - 1) % CHUNK],
		    "contents of a stream");
		at += (size_t)got;
	}
	TRY(recv(fd, back, 1, 0) == 0, "the end of a stream");
	TRY(send(fd, "done", 4, 0) == 4, "acknowledge a stream");
	return close(fd) == 0 && close(listener) == 0;
}

/* Sends a piece in one of several ways; how much of it went. */
static ssize_t send_piece(int fd, int file, unsigned way, size_t from, size_t size)
{
	off_t at = (off_t)from;
	const struct iovec parts[2] = {{data + from, size / 3}, {data + from + size / 3, size - size / 3}};

	switch (way % 5) {
	case 0:
		return writev(fd, parts, 2);
	case 1:
		return sendfile(fd, file, &at, size);
	case 2:
		return send(fd, data + from, size, MSG_MORE | MSG_NOSIGNAL);
	default:
		return write(fd, data + from, size);
	}
}

bool stream_over(const struct site *site, size_t bytes)
{
	static const size_t pieces[] = {900, 26000, 5000, 13000, 47000, 300, 300};
	char done[4];

	pattern(data, sizeof(data), 32);
	TRY(put_file("stream", data, CHUNK, 0600), "write a file");
	const int file = open("stream", O_RDONLY | O_CLOEXEC);
	const pid_t server = start(site, serve_stream, bytes);
	const int fd = server > 0 ? connect_to(site) : -1;
	if (fd < 0 || file < 0)
		return false;
	/* The second half without waiting inside of the calls. */
	for (size_t at = 0, turn = 0; at < bytes; turn++) {
		size_t size = pieces[turn % COUNT(pieces)];
		if (size > bytes - at)
			size = bytes - at;
		if (size > CHUNK - at % CHUNK)
			size = CHUNK - at % CHUNK;
		const ssize_t sent = send_piece(fd, file, (unsigned)turn, at % CHUNK, size);
		if (sent < 0 && errno == EAGAIN) {
			struct pollfd poller = {.fd = fd, .events = POLLOUT};
			TRY(poll(&poller, 1, -1) == 1, "poll a stream");
			continue;
		}
		TRY(sent > 0, "write a stream");
		if (at < bytes / 2 && at + (size_t)sent >= bytes / 2)
			TRY(fcntl(fd, F_SETFL, O_NONBLOCK) == 0, "F_SETFL");
		at += (size_t)sent;
	}
	TRY(fcntl(fd, F_SETFL, 0) == 0 && shutdown(fd, SHUT_WR) == 0 && read_all(fd, done, 4), "end a stream");
	return close(fd) == 0 && close(file) == 0 && unlink("stream") == 0 && reap(server);
}

bool tcp_streams(unsigned rounds)
{
	const bool six = has_family(AF_INET6);

	if (!has_family(AF_INET))
		return true;
	for (unsigned round = 0; round < rounds; round++)
		if (!stream_over(&loopback, 2700000 + 1000 * round) ||
		    (six && !stream_over(&loopback6, 600000)))
			return false;
	return true;
}

/* datagrams */

/* Sends every datagram back, with its bytes in reverse order where it is short. */
static bool serve_datagrams(const struct site *site, size_t count)
{
	struct address address = address_of(site, 0);
	struct address from;
	const int fd = socket_of(site, SOCK_DGRAM);

	TRY(fd >= 0 && bind(fd, &address.any, address.size) == 0 && publish(fd), "bind");
	for (size_t i = 0; i < count; i++) {
		from.size = sizeof(from.six);
		const ssize_t got = recvfrom(fd, back, sizeof(back), 0, &from.any, &from.size);
		TRY(got >= 0 && sendto(fd, back, (size_t)got, 0, &from.any, from.size) == got, "send back");
	}
	return close(fd) == 0;
}

/* Many with one call. */
static bool in_batches(int fd, const struct address *to)
{
	struct mmsghdr messages[8] = {0};
	struct iovec parts[8];
	unsigned received = 0;

	for (unsigned i = 0; i < 8; i++) {
		parts[i] = (struct iovec){data + i, 40 + 150 * i};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
		messages[i].msg_hdr.msg_name = (void *)&to->any;
		messages[i].msg_hdr.msg_namelen = to->size;
	}
	const int sent = sendmmsg(fd, messages, 8, 0);
	TRY(sent == 8, "sendmmsg");
	for (unsigned i = 0; i < 8; i++) {
		parts[i] = (struct iovec){back + 3000 * i, 3000};
		messages[i].msg_hdr.msg_name = NULL;
		messages[i].msg_hdr.msg_namelen = 0;
	}
	while (received < 8) {
		const int got = recvmmsg(fd, messages + received, 8 - received, MSG_WAITFORONE, NULL);
		TRY(got > 0, "recvmmsg");
		received += (unsigned)got;
	}
	for (unsigned i = 0; i < 8; i++)
		TRY(messages[i].msg_len == 40 + 150 * i && same(back + 3000 * i, data + i, 40 + 150 * i),
		    "a datagram of a batch");
	return true;
}

bool datagrams_over(const struct site *site, unsigned count)
{
	pattern(data, sizeof(data), 33);
	const pid_t server = start(site, serve_datagrams, count + 8);
	if (server < 0)
		return false;
	const struct address to = address_of(site, meeting->port);
	const int fd = socket_of(site, SOCK_DGRAM);
	TRY(fd >= 0 && set(fd, SOL_SOCKET, SO_RCVBUF, 200000), "socket");
	if (!in_batches(fd, &to))
		return false;
	for (unsigned i = 0; i < count; i++) {
		/* The largest are longer than the frames of a cable. */
		const size_t size = i % 11 == 10 ? 7000 : 9 + i * 57 % 1400;
		if (i == count / 2)
			TRY(connect(fd, &to.any, to.size) == 0, "connect");
		const ssize_t sent = i < count / 2 ? sendto(fd, data + i, size, 0, &to.any, to.size)
						   : send(fd, data + i, size, 0);
		TRY(sent == (ssize_t)size && recv(fd, back, sizeof(back), 0) == sent, "a datagram's way");
		TRY(same(back, data + i, size), "contents of a datagram");
	}
	TRY(reap(server), "a server of datagrams");
	/* Nobody is there any more, which the other side says. */
	TRY(send(fd, "x", 1, 0) == 1 && recv(fd, back, 1, 0) == -1 && errno == ECONNREFUSED,
	    "a port without a server");
	return close(fd) == 0;
}

/* To a group of receivers, of which there are two here. */
static bool to_group(void)
{
	const struct ip_mreqn group = {.imr_multiaddr = {htonl(0xe0000119)},
				       .imr_address = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = group.imr_multiaddr};
	socklen_t length = sizeof(to);
	int members[2];

	for (int i = 0; i < 2; i++) {
		struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = to.sin_port};
		members[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (!set(members[i], SOL_SOCKET, SO_REUSEADDR, 1))
			return false;
		TRY(bind(members[i], (struct sockaddr *)&any, sizeof(any)) == 0 &&
			    getsockname(members[i], (struct sockaddr *)&any, &length) == 0,
		    "bind");
		to.sin_port = any.sin_port;
		if (setsockopt(members[i], IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group)) != 0)
			return close(members[0]) == 0 && (i == 0 || close(members[1]) == 0) &&
			       lacks("CONFIG_IP_MULTICAST");
	}
	TRY(setsockopt(members[0], IPPROTO_IP, IP_MULTICAST_IF, &group, sizeof(group)) == 0, "IP_MULTICAST_IF");
	for (unsigned i = 0; i < 5; i++) {
		TRY(sendto(members[0], data + i, 333, 0, (struct sockaddr *)&to, sizeof(to)) == 333, "sendto");
		for (int n = 0; n < 2; n++)
			TRY(recv(members[n], back, 400, 0) == 333 && same(back, data + i, 333), "a group's datagram");
	}
	return close(members[0]) == 0 && close(members[1]) == 0;
}

/* One buffer that the kernel cuts into datagrams. */
static bool cut(void)
{
	int size = 1200;
	const struct site *site = &loopback;
	struct address address = address_of(site, 0);
	const int to = socket_of(site, SOCK_DGRAM);
	const int from = socket_of(site, SOCK_DGRAM);

	TRY(bind(to, &address.any, address.size) == 0 &&
		    getsockname(to, &address.any, &address.size) == 0 &&
		    connect(from, &address.any, address.size) == 0,
	    "bind");
	if (setsockopt(from, IPPROTO_UDP, 103 /* UDP_SEGMENT */, &size, sizeof(size)) != 0)
		return close(to) == 0 && close(from) == 0 && lacks("UDP_SEGMENT");
	TRY(send(from, data, 5000, 0) == 5000, "send what will be cut");
	for (size_t at = 0; at < 5000; at += 1200) {
		const size_t wanted = at + 1200 < 5000 ? 1200 : 5000 - at;
		TRY(recv(to, back, 2000, 0) == (ssize_t)wanted && same(back, data + at, wanted), "what was cut");
	}
	return close(to) == 0 && close(from) == 0;
}

bool udp(unsigned rounds)
{
	const bool six = has_family(AF_INET6);

	if (!has_family(AF_INET))
		return true;
	for (unsigned round = 0; round < rounds; round++)
		if (!datagrams_over(&loopback, 66) || !to_group() || !cut() ||
		    (six && !datagrams_over(&loopback6, 33)))
			return false;
	return true;
}
