/*
 * The protocol between the host and the agent (docs/kbench.md). A frame is a header and `size`
 * bytes, all little-endian, as are the numbers inside.
 */
#ifndef MEPOF_ABI_AGENT_PROTOCOL_H
#define MEPOF_ABI_AGENT_PROTOCOL_H

#include <stdint.h>

/* The virtio-serial port that the host opens. */
#define PORT_NAME "mepof"
/* Requests in the initramfs; responses still go to the port. */
#define BATCH_FILE "/mepof/requests"

#define MAGIC 0x3146504du /* "MPF1" */

struct header {
	uint32_t magic;
	uint32_t type;
	uint64_t size;
};

enum request { EXEC = 1, PUT = 2, GET = 3, POWEROFF = 4, SHELL = 6, RECORD = 7 };
/* RESPONSE is added to the request's type. */
enum { HELLO = 0x80, RESPONSE = 0x80, ERROR = 0xff };

/* Of EXEC, where there is no exit status. */
#define STATUS_TIMED_OUT 0xfffffffeu
#define STATUS_NOT_STARTED 0xffffffffu

/* Larger than any profile or test program: a larger size means a broken stream. */
#define REQUEST_LIMIT (256u << 20)
/* Of a program's output; the rest is discarded. */
#define OUTPUT_LIMIT (4u << 20)

#endif
