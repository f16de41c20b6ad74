/* What apps ask of the kernel when they show a screen. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "standin.h"

static char buffer[4096];

/* A database and its journal: written, synced, renamed, read, listed and removed. */
static void files(int amount)
{
	char name[MAX_NAME], renamed[MAX_NAME + 3];

	for (int i = 0; i < amount; i++) {
		snprintf(name, sizeof(name), "/tmp/app-%d-%d", getpid(), i);
		snprintf(renamed, sizeof(renamed), "%s.db", name);
		int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (file < 0)
			exit(70);
		for (int k = 0; k < 8; k++)
			if (write(file, buffer, sizeof(buffer)) != sizeof(buffer))
				exit(70);
		fsync(file);
		struct stat status;
		fstat(file, &status);
		lseek(file, 0, SEEK_SET);
		while (read(file, buffer, sizeof(buffer)) > 0)
			;
		close(file);
		rename(name, renamed);
		access(renamed, R_OK);
		unlink(renamed);
	}
}

/* Messages over a pair of UNIX sockets and over TCP. */
static void sockets(int amount)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		exit(70);
	for (int i = 0; i < 8 * amount; i++) {
		if (write(ends[0], buffer, 512) != 512 || read(ends[1], buffer, 512) != 512)
			exit(70);
	}
	close(ends[0]);
	close(ends[1]);

	int server = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	if (server < 0 || bind(server, (struct sockaddr *)&address, size) != 0 ||
	    listen(server, 1) != 0 || getsockname(server, (struct sockaddr *)&address, &size) != 0)
		exit(70);
	for (int i = 0; i < amount; i++) {
		int client = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(client, (struct sockaddr *)&address, size) != 0)
			exit(70);
		int served = accept(server, NULL, NULL);
		if (write(client, buffer, 64) != 64 || read(served, buffer, 64) != 64 ||
		    write(served, buffer, 4096) < 0 || read(client, buffer, 4096) < 0)
			exit(70);
		close(served);
		close(client);
	}
	close(server);
}

/* Children that say something over a pipe. */
static void processes(int amount)
{
	for (int i = 0; i < amount; i++) {
		int ends[2];
		if (pipe(ends) != 0)
			exit(70);
		pid_t child = fork();
		if (child == 0) {
			_exit(write(ends[1], "x", 1) != 1);
		}
		close(ends[1]);
		if (child < 0 || read(ends[0], buffer, 1) != 1)
			exit(70);
		close(ends[0]);
		waitpid(child, NULL, 0);
	}
}

/* Pictures: mapped, touched, given back. */
static void memory(int amount)
{
	const size_t size = 1 << 20;

	for (int i = 0; i < amount; i++) {
		char *picture = mmap(NULL, size, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (picture == MAP_FAILED)
			exit(70);
		for (size_t at = 0; at < size; at += 4096)
			picture[at] = (char)i;
		mprotect(picture, size / 2, PROT_READ);
		munmap(picture, size);
	}
}

void do_work(const struct work *work)
{
	static const struct {
		const char *kind;
		void (*work)(int);
	} kinds[] = {
		{"files", files}, {"sockets", sockets}, {"processes", processes}, {"memory", memory}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(kinds[i].kind, work->kind) == 0)
			kinds[i].work(work->amount);
}
