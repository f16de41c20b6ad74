#include "trace_file.h"

/* Pairs in one record: 1.5 MiB of a body of up to 16 MiB. */
enum { CHUNK = 1 << 16, END = 255 };

static bool put(struct trace_file *trace, const void *data, size_t size)
{
	return size == 0 || fwrite(data, size, 1, trace->file) == 1;
}

static bool put_head(struct trace_file *trace, uint32_t type, uint64_t size)
{
	const uint32_t head[2] = {type, (uint32_t)size};

	trace->records += type != END;
	return put(trace, head, sizeof(head));
}

bool trace_open(struct trace_file *trace, const char *path, const struct trace_header *header)
{
	*trace = (struct trace_file){.file = fopen(path, "wb")};
	return trace->file != NULL && put(trace, "MEPOFTRC", 8) && put(trace, header, sizeof(*header));
}

bool trace_pairs(struct trace_file *trace, enum trace_record type, const struct path_counts *counts)
{
	for (size_t at = 0; at < counts->used; at += CHUNK) {
		const size_t count = counts->used - at < CHUNK ? counts->used - at : CHUNK;
		if (!put_head(trace, type, count * 3 * sizeof(uint64_t)))
			return false;
		for (size_t i = at; i < at + count; i++) {
			const struct path *path = &counts->slots[i];
			const uint64_t body[3] = {path->first, path->last, path->count};
			if (!put(trace, body, sizeof(body)))
				return false;
		}
	}
	return true;
}

bool trace_sample(struct trace_file *trace, uint64_t time, uint64_t address, uint32_t vcpu,
		  const struct trace_entry *newest_first, uint32_t depth)
{
	const uint64_t body[2] = {time, address};
	const uint32_t sizes[2] = {vcpu, depth};

	return put_head(trace, TRACE_SAMPLE, 24 + sizeof(*newest_first) * (uint64_t)depth) &&
	       put(trace, body, sizeof(body)) && put(trace, sizes, sizeof(sizes)) &&
	       put(trace, newest_first, sizeof(*newest_first) * depth);
}

bool trace_counters(struct trace_file *trace, const uint64_t pairs[][2], uint32_t count)
{
	return put_head(trace, TRACE_COUNTERS, sizeof(*pairs) * (uint64_t)count) &&
	       put(trace, pairs, sizeof(*pairs) * count);
}

bool trace_close(struct trace_file *trace)
{
	bool sound = put_head(trace, END, 8) && put(trace, &trace->records, 8);

	sound = fflush(trace->file) == 0 && sound;
	return fclose(trace->file) == 0 && sound;
}
