#include "pages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The linker defines these around the section. */
extern const struct page_format *const __start_page_formats[];
extern const struct page_format *const __stop_page_formats[];

const struct page_format *page_format(const char *name)
{
	for (const struct page_format *const *each = __start_page_formats;
	     each < __stop_page_formats; each++)
		if (strcmp((*each)->name, name) == 0)
			return *each;
	return NULL;
}

bool guest_memory_find(struct guest_memory *memory, const struct page_format *format)
{
	char line[512];
	bool found = false;
	FILE *maps = fopen("/proc/self/maps", "re");

	while (!found && maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		uint64_t from, to, offset;
		if (strstr(line, "/memfd:memory-backend-memfd") == NULL ||
		    sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &from, &to, &offset) != 3 ||
		    offset != 0)
			continue;
		const uint64_t size = to - from;
		*memory = (struct guest_memory){
			.bytes = (const uint8_t *)(uintptr_t)from,
			.first = format->memory,
			.size = size < format->memory_size ? size : format->memory_size,
		};
		found = true;
	}
	if (maps != NULL)
		fclose(maps);
	return found;
}

uint64_t page_entry(const struct guest_memory *memory, uint64_t physical)
{
	uint64_t entry;

	if (physical < memory->first || memory->size < sizeof(entry) ||
	    physical - memory->first > memory->size - sizeof(entry))
		return 0;
	memcpy(&entry, memory->bytes + (physical - memory->first), sizeof(entry));
	return entry;
}
