#include "decode.h"

#include <string.h>

const struct instruction_set *instruction_set(const char *name)
{
	static const struct instruction_set *const known[] = {&x86_64, &aarch64};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(known[i]->name, name) == 0)
			return known[i];
	return NULL;
}


