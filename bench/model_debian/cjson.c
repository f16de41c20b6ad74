/* JSON, parsed and printed by cJSON. */
#include <stdio.h>

#include <cJSON.h>

#include "text.h"

enum { RECORDS = 300 };

uint64_t work(uint64_t seed)
{
	static char text[200 * RECORDS];
	uint64_t state = seed + 1, sum = 0;
	size_t end = 0;

	text[end++] = '[';
	for (int i = 0; i < RECORDS; i++) {
		char name[16] = {0}, other[16] = {0};
		text_spell(name, text_word(&state));
		text_spell(other, text_word(&state));
		end += (size_t)sprintf(text + end,
				       "%s{\"id\": %u, \"%s\": \"%s %s\", \"list\": [%u, -%u.5, true, null]}",
				       i > 0 ? ",\n" : "", draw(&state) % 9999, name, other, name,
				       draw(&state) % 100, draw(&state) % 77777);
	}
	text[end++] = ']';
	text[end] = '\0';
	for (int i = 0; i < 3; i++) {
		cJSON *root = cJSON_Parse(text);
		char *printed = cJSON_PrintUnformatted(root);
		sum += text_sum(printed, strlen(printed));
		cJSON_free(printed);
		cJSON_Delete(root);
	}
	return sum;
}
