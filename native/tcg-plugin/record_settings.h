/* What the recorder's arguments say. */
#ifndef MEPOF_RECORD_SETTINGS_H
#define MEPOF_RECORD_SETTINGS_H

#include <stdbool.h>

#include "trace_file.h"

/* Between whose marks to record. */
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
	/* Distinct paths in a table, at most. */
	uint64_t paths;
	struct trace_header header;
};

/* False, and a complaint on standard error, if they make no sense. */
bool record_settings_read(struct record_settings *settings, int argc, char **argv);

/* The complaint, with how it is used; `word` may be NULL. Always false. */
bool record_refuse(const char *complaint, const char *word);

#endif
