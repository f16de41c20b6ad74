/* Shared by the parts of the network suite. */
#ifndef MEPOF_SUITES_NETWORK_H
#define MEPOF_SUITES_NETWORK_H

#include <stdbool.h>

/*
 * The namespaces of client and server: both in one with its loopback device, or each in one of its
 * own with a cable (a veth pair) between them.
 */
struct topology {
	const char *server_address;
	/* -1 for the namespace in which the program began. */
	int client_namespace;
	int server_namespace;
};

/* End the program as unsupported if the kernel does not have namespaces or veth. */
bool topology_loopback(struct topology *topology);
bool topology_cable(struct topology *topology);

/* Move the calling process or thread to one of these namespaces. */
bool enter(int namespace);

#endif
