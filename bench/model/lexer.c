/* A state machine that takes C-like text apart: names, numbers, strings, comments. */
#include "work.h"

enum { LENGTH = 120000 };
static char text[LENGTH + 1];

static const char *const pieces[] = {"if (count > 0x1f) ", "return value; ", "/* why */ ",
				     "name_2 = 12.5e3;\n", "\"a \\\"string\\\"\" ", "// to the end\n",
				     "x++; ", "for (;;) { } ", "while (a && b || !c) ", "'c' "};

static void prepare(uint64_t state)
{
	size_t at = 0;

	for (;;) {
		const char *piece = pieces[draw(&state) % (sizeof(pieces) / sizeof(*pieces))];
		const size_t length = strlen(piece);
		if (at + length > LENGTH)
			break;
		memcpy(text + at, piece, length);
		at += length;
	}
	text[at] = '\0';
}

static int is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	enum { BETWEEN, NAME, NUMBER, STRING, CHARACTER, SLASH, LINE, BLOCK, STAR } state = BETWEEN;
	uint64_t tokens[9] = {0}, sum = 0;

	for (const char *at = text; *at; at++) {
		const char c = *at;
		switch (state) {
		case NAME:
			if (is_letter(c) || is_digit(c))
				continue;
			break;
		case NUMBER:
			if (is_digit(c) || is_letter(c) || c == '.')
				continue;
			break;
		case STRING:
		case CHARACTER:
			if (c == '\\')
				at++;
			else if (c == (state == STRING ? '"' : '\''))
				state = BETWEEN;
			continue;
		case SLASH:
			state = c == '/' ? LINE : c == '*' ? BLOCK : BETWEEN;
			continue;
		case LINE:
			if (c == '\n')
				state = BETWEEN;
			continue;
		case BLOCK:
			if (c == '*')
				state = STAR;
			continue;
		case STAR:
			state = c == '/' ? BETWEEN : c == '*' ? STAR : BLOCK;
			continue;
		case BETWEEN:
			break;
		}
		state = is_letter(c)  ? NAME
			: is_digit(c) ? NUMBER
			: c == '"'    ? STRING
			: c == '\''   ? CHARACTER
			: c == '/'    ? SLASH
				      : BETWEEN;
		tokens[state]++;
	}
	for (int i = 0; i < 9; i++)
		sum = sum * 31 + tokens[i];
	return sum;
}
