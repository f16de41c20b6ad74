#include "decode.h"

#include <string.h>

/* Begin and end of the section, defined by the linker. */
extern const struct instruction_set *const __start_instruction_sets[]
	__attribute__((visibility("hidden")));
extern const struct instruction_set *const __stop_instruction_sets[]
	__attribute__((visibility("hidden")));

const struct instruction_set *instruction_set(const char *name)
{
	const struct instruction_set *const *set;

	for (set = __start_instruction_sets; set < __stop_instruction_sets; set++)
		if (strcmp((*set)->name, name) == 0)
			return *set;
	return NULL;
}
