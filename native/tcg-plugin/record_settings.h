/* The arguments of the recording plugin. */
#ifndef MEPOF_RECORD_SETTINGS_H
#define MEPOF_RECORD_SETTINGS_H

#include <stdbool.h>

#include "trace_file.h"

/* Which marks begin and end the recording. */
enum span {
	/* The benchmark's. */
	SPAN_MARKS,
	/* The agent's. */
	SPAN_SESSION,
	/* From the first instruction to the last, whatever marks there are. */
	SPAN_ALL,
};

struct record_settings {
	const char *out;
	enum span span;
	/* Maximum number of distinct paths in a table. */
	uint64_t paths;
	/* The vCPUs take turns in one thread. */
	bool takes_turns;
	struct trace_header header;
};

/* False, after an error message on standard error, if they are invalid. */
bool record_settings_read(struct record_settings *settings, int argc, char **argv);

/* Prints the error message and the usage; `word` may be NULL. Always false. */
bool record_refuse(const char *message, const char *word);

#endif
