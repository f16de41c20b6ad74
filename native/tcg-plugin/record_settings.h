/* What the recorder's arguments say. */
#ifndef MEPOF_RECORD_SETTINGS_H
#define MEPOF_RECORD_SETTINGS_H

#include <stdbool.h>

#include "trace_file.h"

struct record_settings {
	const char *out;
	/* From the first instruction to the last, whatever marks there are. */
	bool whole_run;
	struct trace_header header;
};

/* False, and a complaint on standard error, if they make no sense. */
bool record_settings_read(struct record_settings *settings, int argc, char **argv);

/* The complaint, with how it is used; `word` may be NULL. Always false. */
bool record_refuse(const char *complaint, const char *word);

#endif
