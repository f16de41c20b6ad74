/*
 * Binder without libbinder, directly on the driver: one server that is the context manager, and
 * clients that call it. linux/android/binder.h defines the protocol.
 */
#ifndef MEPOF_SUITES_BINDER_LINK_H
#define MEPOF_SUITES_BINDER_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Larger than any payload of the suites and what the driver adds. */
#define BINDER_LINK_MAX 8192

/* Turns a request into its reply, which has at most BINDER_LINK_MAX bytes; false is an error. */
typedef bool (*binder_service)(uint32_t code, const void *request, size_t size, void *reply,
			       size_t *reply_size);

/*
 * The binder device of a fresh binderfs. Ends the program as unsupported if the kernel does not
 * have binder. The descriptor is for one process: each opens its own.
 */
int binder_open(void);

/* Map the buffer in which a process receives; once for each descriptor. */
bool binder_map(int device);

/* Become the context manager, which clients reach without a handle. */
bool binder_become_manager(int device);

/*
 * Serve for ever on the calling thread, which joins the pool of the process. Returns only on an
 * error.
 */
bool binder_serve(int device, binder_service service);

/* A call and its reply, which must have exactly that size. */
bool binder_call(int device, uint32_t code, const void *request, size_t size, void *reply,
		 size_t reply_size);

#endif
