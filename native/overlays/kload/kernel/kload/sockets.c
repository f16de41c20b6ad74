// SPDX-License-Identifier: GPL-2.0
/* Messages between two sockets of one thread: there, and for a round trip back. */
#include <linux/err.h>
#include <linux/if.h>
#include <linux/in.h>
#include <linux/init.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/tcp.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "kload.h"

#define MESSAGE 64

static struct socket *near_end, *far_end;
static char *buffer;

/* Before the first process, nobody has brought the loopback device up. */
int __init kload_sockets_init(void)
{
	struct net_device *loopback = init_net.loopback_dev;
	int error;

	rtnl_lock();
	error = dev_change_flags(loopback, loopback->flags | IFF_UP, NULL);
	rtnl_unlock();
	return error;
}

static int transfer(struct socket *from, struct socket *to, size_t size)
{
	struct msghdr message = { };
	struct kvec whole = { buffer, size };
	size_t got = 0;

	if (kernel_sendmsg(from, &message, &whole, 1, size) != size)
		return -EIO;
	while (got < size) {
		struct msghdr answer = { };
		struct kvec rest = { buffer + got, size - got };
		int part = kernel_recvmsg(to, &answer, &rest, 1, size - got, 0);

		if (part <= 0)
			return part ?: -EIO;
		got += part;
	}
	return 0;
}

static int round_trip(unsigned int batch)
{
	while (batch--) {
		int error = transfer(near_end, far_end, MESSAGE) ?:
			    transfer(far_end, near_end, MESSAGE);

		if (error)
			return error;
	}
	return 0;
}

static int stream(unsigned int batch)
{
	while (batch--) {
		int error = transfer(near_end, far_end, SZ_16K);

		if (error)
			return error;
	}
	return 0;
}

static void close_both(void)
{
	if (near_end)
		sock_release(near_end);
	if (far_end)
		sock_release(far_end);
	near_end = NULL;
	far_end = NULL;
	kfree(buffer);
}

static int failed(int error)
{
	if (error)
		close_both();
	return error;
}

static int take_buffer(void)
{
	buffer = kzalloc(SZ_16K, GFP_KERNEL);
	return buffer ? 0 : -ENOMEM;
}

static int open_unix(int type)
{
	int error = take_buffer();

	if (!error)
		error = sock_create_kern(&init_net, AF_UNIX, type, 0, &near_end);
	if (!error)
		error = sock_create_kern(&init_net, AF_UNIX, type, 0, &far_end);
	if (!error)
		error = near_end->ops->socketpair(near_end, far_end);
	return failed(error);
}

static int open_unix_stream(void)
{
	return open_unix(SOCK_STREAM);
}

static int open_unix_datagram(void)
{
	return open_unix(SOCK_DGRAM);
}

/*
 * A socket of that type with a free port of the loopback address, which it stores. Addresses are
 * passed as void *: the type that functions take is sockaddr_unsized since Linux 6.19.
 */
static int bound(int type, struct socket **made, struct sockaddr_in *address)
{
	int error = sock_create_kern(&init_net, AF_INET, type, 0, made);

	*address = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	if (!error)
		error = kernel_bind(*made, (void *)address, sizeof(*address));
	if (!error)
		error = min(kernel_getsockname(*made, (struct sockaddr *)address), 0);
	return error;
}

static int open_udp(void)
{
	struct sockaddr_in near_address, far_address;
	int error = take_buffer();

	if (!error)
		error = bound(SOCK_DGRAM, &near_end, &near_address);
	if (!error)
		error = bound(SOCK_DGRAM, &far_end, &far_address);
	if (!error)
		error = kernel_connect(near_end, (void *)&far_address, sizeof(far_address), 0);
	if (!error)
		error = kernel_connect(far_end, (void *)&near_address, sizeof(near_address), 0);
	return failed(error);
}

/* One thread sends and receives, so what it sends must fit before the other end acknowledges it. */
static void widen(struct socket *socket)
{
	struct sock *sk = socket->sk;

	tcp_sock_set_nodelay(sk);
	lock_sock(sk);
	sk->sk_userlocks |= SOCK_SNDBUF_LOCK;
	WRITE_ONCE(sk->sk_sndbuf, SZ_4M);
	release_sock(sk);
}

static int open_tcp(void)
{
	struct socket *listener = NULL;
	struct sockaddr_in address;
	int error = take_buffer();

	if (!error)
		error = bound(SOCK_STREAM, &listener, &address);
	if (!error)
		error = kernel_listen(listener, 1);
	if (!error)
		error = sock_create_kern(&init_net, AF_INET, SOCK_STREAM, 0, &near_end);
	if (!error)
		error = kernel_connect(near_end, (void *)&address, sizeof(address), 0);
	if (!error)
		error = kernel_accept(listener, &far_end, 0);
	if (listener)
		sock_release(listener);
	if (!error) {
		widen(near_end);
		widen(far_end);
	}
	return failed(error);
}

const struct kload_case kload_sockets[] = {
	{ "unix-stream", 200, open_unix_stream, round_trip, close_both },
	{ "unix-datagram", 200, open_unix_datagram, round_trip, close_both },
	{ "udp", 100, open_udp, round_trip, close_both },
	{ "tcp", 50, open_tcp, round_trip, close_both },
	{ "tcp-16k", 50, open_tcp, stream, close_both },
	{ }
};
