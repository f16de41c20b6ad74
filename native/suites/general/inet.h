/* Loads over the Internet's protocols, between two addresses of any interface. */
#ifndef MEPOF_GENERAL_INET_H
#define MEPOF_GENERAL_INET_H

#include <stdbool.h>
#include <sys/socket.h>

/*
 * Where a server and its clients are: the server's address, for inet_pton(), and what its process
 * does first, such as entering a namespace.
 */
struct site {
	int family;
	const char *address;
	bool (*enter)(void);
};

extern const struct site loopback;
extern const struct site loopback6;

/* Whether the kernel has a family; names what it lacks if not. */
bool has_family(int family);

bool ask_over(const struct site *site, unsigned requests);
bool stream_over(const struct site *site, size_t bytes);
bool datagrams_over(const struct site *site, unsigned count);

#endif
