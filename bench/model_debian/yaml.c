/* YAML, parsed to events by libyaml. */
#include <stdio.h>

#include <yaml.h>

#include "text.h"

enum { RECORDS = 150 };

uint64_t work(uint64_t seed)
{
	static char text[200 * RECORDS];
	uint64_t state = seed + 1, sum = 0;
	size_t end = 0;

	for (int i = 0; i < RECORDS; i++) {
		char name[16] = {0}, other[16] = {0};
		text_spell(name, text_word(&state));
		text_spell(other, text_word(&state));
		end += (size_t)sprintf(text + end,
				       "- %s: \"%s\\t%u\"\n  list: [%s, 'it''s', *a%d]\n  deep: &a%d\n"
				       "    - x: %u # %s\n    - >\n      %s\n      %s\n",
				       name, other, draw(&state) % 999, name, i > 0 ? i - 1 : 0, i,
				       draw(&state) % 100, other, name, other);
	}
	for (int i = 0, done = 0; i < 2; i++, done = 0) {
		yaml_parser_t parser;
		yaml_event_t event;
		yaml_parser_initialize(&parser);
		yaml_parser_set_input_string(&parser, (const unsigned char *)text, end);
		while (!done && yaml_parser_parse(&parser, &event)) {
			sum = sum * 31 + (uint64_t)event.type + event.start_mark.index;
			done = event.type == YAML_STREAM_END_EVENT;
			yaml_event_delete(&event);
		}
		yaml_parser_delete(&parser);
	}
	return sum;
}
