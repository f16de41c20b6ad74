/*
 * Lets adbd listen where the kernel has no IPv6: preloaded, it turns adbd's socket into one of
 * IPv4 on the loopback interface. It links to no C library, so that it suits adbd's own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int socket(int domain, int type, int protocol)
{
	const int before = errno;
	long made = syscall(SYS_socket, domain, type, protocol);

	if (made < 0 && errno == EAFNOSUPPORT && domain == AF_INET6) {
		made = syscall(SYS_socket, AF_INET, type, protocol);
		/* adbd gives up where this error is left behind. */
		if (made >= 0)
			errno = before;
	}
	return (int)made;
}

int bind(int fd, const struct sockaddr *address, socklen_t size)
{
	const int before = errno;
	long done = syscall(SYS_bind, fd, address, size);

	if (done < 0 && address->sa_family == AF_INET6) {
		const struct sockaddr_in loopback = {
			.sin_family = AF_INET,
			.sin_port = ((const struct sockaddr_in6 *)address)->sin6_port,
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		};
		done = syscall(SYS_bind, fd, &loopback, sizeof(loopback));
		if (done >= 0)
			errno = before;
	}
	return (int)done;
}
