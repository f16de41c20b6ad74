/*
 * Carries adb's bytes between a virtio-serial port and adbd, so that the kernel needs no network
 * device: adb connects to the port's other end on the host.
 *
 *   bridge PORT TCP-PORT
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void pause_ms(long milliseconds)
{
	const struct timespec time = {.tv_nsec = milliseconds * 1000000};

	nanosleep(&time, NULL);
}

/* Moves what can be read now; false when an end is closed. */
static bool move(int from, int to)
{
	static char buffer[1 << 16];
	const ssize_t got = read(from, buffer, sizeof(buffer));

	if (got <= 0)
		return got < 0 && (errno == EINTR || errno == EAGAIN);
	for (ssize_t at = 0; at < got;) {
		const ssize_t put = write(to, buffer + at, (size_t)(got - at));
		if (put < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		if (put > 0)
			at += put;
	}
	return true;
}

/* One connection of adb's, until it or adbd ends. */
static void carry(int port, int adbd)
{
	struct pollfd ends[] = {{port, POLLIN, 0}, {adbd, POLLIN, 0}};

	while (poll(ends, 2, -1) >= 0 || errno == EINTR) {
		if (ends[0].revents & POLLHUP)
			return;
		if ((ends[0].revents & POLLIN) && !move(port, adbd))
			return;
		if ((ends[1].revents & (POLLIN | POLLHUP)) && !move(adbd, port))
			return;
	}
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: bridge PORT TCP-PORT\n");
		return 2;
	}
	const int port = open(argv[1], O_RDWR | O_CLOEXEC);
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)atoi(argv[2])),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	if (port < 0) {
		perror(argv[1]);
		return 1;
	}
	for (;;) {
		struct pollfd waiting = {port, POLLIN, 0};
		poll(&waiting, 1, -1);
		/* Without a host the port is readable, and reads as its end. */
		if (!(waiting.revents & POLLIN) || (waiting.revents & POLLHUP)) {
			pause_ms(50);
			continue;
		}
		const int adbd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(adbd, (const struct sockaddr *)&address, sizeof(address)) == 0)
			carry(port, adbd);
		else
			pause_ms(200); /* what adb sent waits in the port */
		close(adbd);
	}
}
