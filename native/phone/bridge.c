/*
 * Carries adb's bytes between a virtio-serial port and adbd, so that the kernel needs no network
 * device: adb connects to the port's other end on the host.
 *
 *   bridge PORT CONTROL TCP-PORT
 *
 * It tells the other end of CONTROL when adbd can be reached, so that adb finds no phone before, and
 * when adbd has ended a connection, which a port cannot show.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* True when a host has sent something; false when adbd has ended the connection before. */
static bool wait_for_host(int port, int adbd)
{
	for (;;) {
		struct pollfd ends[] = {{adbd, POLLIN, 0}, {port, POLLIN, 0}};
		poll(ends, 2, -1);
		if (ends[0].revents)
			return false;
		/* Without a host the port is readable, and reads as its end. */
		if (!(ends[1].revents & POLLHUP))
			return true;
		pause_ms(50);
	}
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

/* A line that the port's other end reads. */
static void tell(const char *control, const char *line)
{
	int fd;

	/* A port has one user at a time. */
	while ((fd = open(control, O_WRONLY | O_CLOEXEC)) < 0 && errno == EBUSY)
		pause_ms(20);
	if (fd < 0 || write(fd, line, strlen(line)) < 0)
		perror(control);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: bridge PORT CONTROL TCP-PORT\n");
		return 2;
	}
	const int port = open(argv[1], O_RDWR | O_CLOEXEC);
	bool up = false;
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)atoi(argv[3])),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	if (port < 0) {
		perror(argv[1]);
		return 1;
	}
	for (;;) {
		const int adbd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		const bool reached =
			connect(adbd, (const struct sockaddr *)&address, sizeof(address)) == 0;
		if (reached != up)
			tell(argv[2], reached ? "adbd up\n" : "adbd down\n");
		up = reached;
		if (up && wait_for_host(port, adbd))
			carry(port, adbd);
		if (up)
			tell(argv[2], "adbd down\n");
		close(adbd);
		pause_ms(100);
	}
}
