/* HTTP requests, parsed by the state machine of Node's parser. */
#include <stdio.h>

#include <http_parser.h>

#include "text.h"

enum { REQUESTS = 200, TIMES = 6 };
static uint64_t seen;

static int data(http_parser *parser, const char *at, size_t length)
{
	(void)parser;
	seen = seen * 31 + length + (unsigned char)*at;
	return 0;
}

uint64_t work(uint64_t seed)
{
	static char text[500 * REQUESTS];
	uint64_t state = seed + 1;
	http_parser_settings settings;
	size_t end = 0;

	for (int i = 0; i < REQUESTS; i++) {
		char name[16] = {0}, other[16] = {0};
		text_spell(name, text_word(&state));
		text_spell(other, text_word(&state));
		end += (size_t)sprintf(text + end,
				       "%s /%s/%s?q=%u HTTP/1.1\r\nHost: %s\r\nAccept: */*\r\nX-%s: %s\r\n"
				       "Connection: keep-alive\r\nContent-Length: %d\r\n\r\n",
				       i % 3 ? "GET" : "POST", name, other, draw(&state) % 1000, other,
				       other, name, i % 3 ? 0 : 5);
		if (i % 3 == 0)
			end += (size_t)sprintf(text + end, "hello");
	}
	http_parser_settings_init(&settings);
	settings.on_url = settings.on_header_field = settings.on_header_value = settings.on_body = data;
	seen = 0;
	for (int i = 0; i < TIMES; i++) {
		http_parser parser;
		http_parser_init(&parser, HTTP_REQUEST);
		seen += http_parser_execute(&parser, &settings, text, end);
	}
	return seen;
}
