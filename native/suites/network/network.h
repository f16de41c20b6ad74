/* What the network suite's parts share. */
#ifndef MEPOF_SUITES_NETWORK_H
#define MEPOF_SUITES_NETWORK_H

#include <stdbool.h>

/*
 * Where client and server stand: in one network namespace with its loopback device, or each in
 * one of its own with a cable (a veth pair) between them.
 */
struct place {
	const char *server_address;
	/* -1 for the namespace that the program began in. */
	int client_namespace;
	int server_namespace;
};

/* End the program as unsupported where the kernel has no such thing. */
bool place_loopback(struct place *place);
bool place_cable(struct place *place);

/* Move the calling process or thread to a namespace of place_*. */
bool enter(int namespace);

#endif
