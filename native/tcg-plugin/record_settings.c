#include "record_settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_DEPTH = 32 };

bool record_refuse(const char *message, const char *word)
{
	fprintf(stderr,
		"record: %s%s%s (usage: -plugin record.so,out=FILE[,span=marks|session|all]"
		"[,sample=PERIOD[,depth=N]][,paths=N][,text=ADDRESS][,buildid=HEX][,cpus=turns])\n",
		message, word ? ": " : "", word ? word : "");
	return false;
}

static bool read_number(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
	char *rest;

	errno = 0;
	*number = strtoull(text, &rest, 0);
	return errno == 0 && text[0] >= '0' && text[0] <= '9' && *rest == '\0' && *number >= min &&
	       *number <= max;
}

static bool read_span(const char *name, enum span *span)
{
	static const char *const names[] = {
		[SPAN_MARKS] = "marks",
		[SPAN_SESSION] = "session",
		[SPAN_ALL] = "all",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(name, names[i]) == 0) {
			*span = (enum span)i;
			return true;
		}
	}
	return false;
}

static bool read_build_id(struct trace_header *header, const char *digits)
{
	const size_t size = strlen(digits) / 2;

	if (strlen(digits) % 2 != 0 || size == 0 || size > sizeof(header->build_id) ||
	    strspn(digits, "0123456789abcdefABCDEF") != size * 2)
		return false;
	for (size_t i = 0; i < size; i++) {
		const char byte[3] = {digits[2 * i], digits[2 * i + 1], '\0'};
		header->build_id[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
	header->build_id_size = (uint32_t)size;
	return true;
}

static bool read_argument(struct record_settings *settings, const char *name, size_t length,
			  const char *value)
{
	struct trace_header *header = &settings->header;
	uint64_t number;

	if (strncmp(name, "out=", length + 1) == 0) {
		settings->out = value;
		return *value != '\0';
	}
	if (strncmp(name, "span=", length + 1) == 0) {
		return read_span(value, &settings->span);
	}
	if (strncmp(name, "sample=", length + 1) == 0) {
		header->flags |= TRACE_SAMPLED;
		header->event = TRACE_EVENT_TAKEN;
		return read_number(value, 1, UINT64_MAX, &header->period);
	}
	if (strncmp(name, "depth=", length + 1) == 0) {
		const bool sound = read_number(value, 1, MAX_DEPTH, &number);
		header->depth = (uint32_t)number;
		return sound;
	}
	if (strncmp(name, "paths=", length + 1) == 0)
		return read_number(value, 1, PATHS_KEPT, &settings->paths);
	if (strncmp(name, "cpus=", length + 1) == 0) {
		settings->takes_turns = strcmp(value, "turns") == 0;
		return settings->takes_turns;
	}
	if (strncmp(name, "text=", length + 1) == 0) {
		memcpy(header->reference_name, "_text", sizeof("_text"));
		return read_number(value, 1, UINT64_MAX, &header->reference);
	}
	return strncmp(name, "buildid=", length + 1) == 0 && read_build_id(header, value);
}

bool record_settings_read(struct record_settings *settings, int argc, char **argv)
{
	struct trace_header *header = &settings->header;

	*settings = (struct record_settings){
		.paths = PATHS_KEPT, .header = {.version = 1, .flags = TRACE_KERNEL_ONLY}};
	for (int i = 0; i < argc; i++) {
		const char *sign = strchr(argv[i], '=');
		if (sign == NULL ||
		    !read_argument(settings, argv[i], (size_t)(sign - argv[i]), sign + 1))
			return record_refuse("invalid argument", argv[i]);
	}
	if (settings->out == NULL)
		return record_refuse("out=FILE is missing", NULL);
	if (header->depth != 0 && !(header->flags & TRACE_SAMPLED))
		return record_refuse("depth=N requires sample=PERIOD", NULL);
	if (settings->takes_turns && settings->span == SPAN_ALL)
		return record_refuse("cpus=turns requires marks: a booting kernel's CPUs look the same",
				     NULL);
	if (header->flags & TRACE_SAMPLED && header->depth == 0)
		header->depth = DEFAULT_DEPTH;
	return true;
}
