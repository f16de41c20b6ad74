/* Sockets of the family AF_UNIX: streams, packets and datagrams, and descriptors sent over them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "general.h"

#define CLIENTS 4
#define SENDERS 5
#define PIECES 30

static unsigned char data[30000];
static unsigned char back[30000];

static socklen_t named(struct sockaddr_un *address, const char *name)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	strncpy(address->sun_path + (name[0] == '@'), name + (name[0] == '@'),
		sizeof(address->sun_path) - 2);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
}

static size_t size_of(unsigned i)
{
	return 21 + i * 389 % 6007;
}

/* A service: connections one after another and side by side, requests answered in reverse. */
static bool serve(int listener)
{
	struct pollfd pollers[CLIENTS + 1] = {{.fd = listener, .events = POLLIN}};
	unsigned open_ones = 0;
	unsigned ended = 0;
	uint32_t size;

	while (ended < CLIENTS) {
		if (poll(pollers, open_ones + 1, -1) < 1)
			return false;
		for (unsigned i = 1; i <= open_ones; i++) {
			if ((pollers[i].revents & (POLLIN | POLLHUP)) == 0)
				continue;
			if (!read_all(pollers[i].fd, &size, sizeof(size))) {
				close(pollers[i].fd);
				pollers[i].fd = -1;
				ended++;
				continue;
			}
			if (size > sizeof(back) || !read_all(pollers[i].fd, back, size))
				return false;
			for (uint32_t at = 0; at < size; at++)
				back[at] ^= 0x55;
			if (!write_all(pollers[i].fd, back, size))
				return false;
		}
		if (pollers[0].revents & POLLIN) {
			const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
			if (fd < 0)
				return false;
			pollers[++open_ones] = (struct pollfd){.fd = fd, .events = POLLIN};
			if (open_ones == CLIENTS)
				pollers[0].fd = -1;
		}
	}
	return true;
}

static bool ask(int fd, size_t size)
{
	const uint32_t length = (uint32_t)size;
	const struct iovec parts[2] = {{(void *)&length, sizeof(length)}, {data, size}};
	const struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = 2};

	TRY(sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)(size + sizeof(length)), "sendmsg");
	TRY(recv(fd, back, size, MSG_WAITALL) == (ssize_t)size, "recv");
	for (size_t i = 0; i < size; i += 61)
		back[i] ^= 0x55;
	for (size_t i = 0; i < size; i += 61)
		TRY(back[i] == (unsigned char)(data[i] + damaged()), "an answer");
	return true;
}

static bool service(const char *name)
{
	struct sockaddr_un address;
	struct sockaddr_un own;
	socklen_t length = named(&address, name);
	socklen_t own_length = sizeof(own);
	struct ucred peer;
	socklen_t peer_length = sizeof(peer);
	int clients[CLIENTS];
	const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0)
		return lacks("CONFIG_UNIX");
	TRY(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 5) == 0, "bind");
	const pid_t server = fork_child();
	if (server == 0)
		leave(serve(listener));
	TRY(server > 0, "fork");
	for (unsigned i = 0; i < CLIENTS; i++) {
		clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		TRY(clients[i] >= 0 && connect(clients[i], (struct sockaddr *)&address, length) == 0, "connect");
		for (unsigned n = 0; n <= i; n++)
			if (!ask(clients[i], size_of(i + n)))
				return false;
	}
	for (unsigned n = 0; n < 24; n++)
		if (!ask(clients[n * 3 % CLIENTS], size_of(n)))
			return false;
	TRY(getsockopt(clients[0], SOL_SOCKET, SO_PEERCRED, &peer, &peer_length) == 0 &&
		    peer.pid == getpid() && getpeername(clients[1], (struct sockaddr *)&own, &own_length) == 0,
	    "a peer");
	for (unsigned i = 0; i < CLIENTS; i++)
		TRY((i % 2 || shutdown(clients[i], SHUT_WR) == 0) && close(clients[i]) == 0, "close");
	TRY(close(listener) == 0 && reap(server), "a service");
	return name[0] == '@' || unlink(name) == 0;
}

/* Descriptors and credentials, as a desktop's bus sends them. */
static bool passed(int type)
{
	int pair[2];
	int ends[2];
	int got[3];
	int on = 1;
	char text[20] = "";
	_Alignas(struct cmsghdr) unsigned char control[CMSG_SPACE(3 * sizeof(int)) +
						       CMSG_SPACE(sizeof(struct ucred))];
	struct iovec part = {text, 9};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(3 * sizeof(int))};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	TRY(socketpair(AF_UNIX, type, 0, pair) == 0 && pipe(ends) == 0, "socketpair");
	TRY(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0, "SO_PASSCRED");
	memset(control, 0, sizeof(control));
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(3 * sizeof(int));
	memcpy(CMSG_DATA(header), (int[]){ends[0], ends[1], pair[0]}, 3 * sizeof(int));
	memcpy(text, "envelope", 9);
	TRY(sendmsg(pair[0], &message, 0) == 9 && close(ends[0]) == 0 && close(ends[1]) == 0, "sendmsg");
	memset(control, 0, sizeof(control));
	message.msg_controllen = sizeof(control);
	TRY(recvmsg(pair[1], &message, MSG_CMSG_CLOEXEC) == 9 && strcmp(text, "envelope") == 0, "recvmsg");
	unsigned found = 0;
	for (header = CMSG_FIRSTHDR(&message); header != NULL; header = CMSG_NXTHDR(&message, header)) {
		if (header->cmsg_type == SCM_RIGHTS) {
			memcpy(got, CMSG_DATA(header), sizeof(got));
			found++;
		} else if (header->cmsg_type == SCM_CREDENTIALS) {
			struct ucred from;
			memcpy(&from, CMSG_DATA(header), sizeof(from));
			found += from.pid == getpid();
		}
	}
	TRY(found == 2, "what was passed");
	TRY(write(got[1], "still open", 10) == 10 && read(got[0], text, 10) == 10, "a passed pipe");
	for (int i = 0; i < 3; i++)
		TRY(close(got[i]) == 0, "close");
	return close(pair[0]) == 0 && close(pair[1]) == 0;
}

/* Datagrams by name, with their senders' names. */
static bool datagrams(void)
{
	struct sockaddr_un address;
	struct sockaddr_un from;
	socklen_t length = named(&address, "inbox");
	const int inbox = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const int sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	TRY(bind(inbox, (struct sockaddr *)&address, length) == 0, "bind");
	for (unsigned i = 0; i < PIECES / 5; i++)
		TRY(sendto(sender, data, size_of(i), 0, (struct sockaddr *)&address, length) ==
			    (ssize_t)size_of(i),
		    "sendto");
	struct sockaddr_un own;
	const socklen_t own_length = named(&own, "outbox");
	TRY(bind(sender, (struct sockaddr *)&own, own_length) == 0 &&
		    connect(sender, (struct sockaddr *)&address, length) == 0 &&
		    send(sender, data, 77, 0) == 77,
	    "a connected datagram");
	TRY(recv(inbox, back, 10, MSG_PEEK | MSG_TRUNC) == (ssize_t)size_of(0), "MSG_PEEK");
	for (unsigned i = 0; i < PIECES / 5; i++)
		TRY(recv(inbox, back, sizeof(back), 0) == (ssize_t)size_of(i) &&
			    same(data, back, size_of(i)),
		    "a datagram");
	socklen_t from_length = sizeof(from);
	TRY(recvfrom(inbox, back, sizeof(back), 0, (struct sockaddr *)&from, &from_length) == 77 &&
		    strcmp(from.sun_path, "outbox") == 0,
	    "a datagram's sender");
	TRY(close(inbox) == 0 && send(sender, data, 1, 0) == -1 && errno == ECONNREFUSED, "a closed inbox");
	return close(sender) == 0 && unlink("inbox") == 0 && unlink("outbox") == 0;
}

/* Several processes send to one, more than the socket holds, so that they have to wait. */
static bool crowd(int type)
{
	int pair[2];
	pid_t senders[SENDERS];
	unsigned seen[SENDERS] = {0};
	unsigned char piece[230];

	TRY(socketpair(AF_UNIX, type, 0, pair) == 0, "socketpair");
	int small = 4000;
	TRY(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)) == 0, "SO_SNDBUF");
	for (unsigned i = 0; i < SENDERS; i++) {
		senders[i] = fork_child();
		if (senders[i] != 0)
			continue;
		memset(piece, (int)i, sizeof(piece));
		bool sound = true;
		for (unsigned n = 0; sound && n < PIECES; n++)
			sound = send(pair[0], piece, sizeof(piece), 0) == (ssize_t)sizeof(piece);
		leave(sound);
	}
	for (unsigned n = 0; n < SENDERS * PIECES; n++) {
		TRY(recv(pair[1], piece, sizeof(piece), MSG_WAITALL) == (ssize_t)sizeof(piece) &&
			    piece[0] < SENDERS && piece[0] == piece[sizeof(piece) - 1],
		    "a piece");
		seen[piece[0]]++;
	}
	for (unsigned i = 0; i < SENDERS; i++)
		TRY(reap(senders[i]) && seen[i] == PIECES + (unsigned)damaged(), "a sender");
	return close(pair[0]) == 0 && close(pair[1]) == 0;
}

bool unix_sockets(unsigned rounds)
{
	char abstract[32];

	pattern(data, sizeof(data), 22);
	snprintf(abstract, sizeof(abstract), "@general-%d", (int)getpid());
	for (unsigned round = 0; round < rounds; round++)
		if (!service(round % 2 ? abstract : "service") || !passed(SOCK_STREAM) ||
		    !passed(SOCK_SEQPACKET) || !datagrams() ||
		    !crowd(round % 2 ? SOCK_SEQPACKET : SOCK_STREAM))
			return false;
	return true;
}
