/* Words of a text: counted, turned round, looked for. */
#include "work.h"

enum { LENGTH = 60000 };
static char text[LENGTH + 1], copy[LENGTH + 1];

static void prepare(uint64_t state)
{
	for (size_t i = 0; i < LENGTH; i++) {
		const uint32_t drawn = draw(&state) % 40;
		text[i] = drawn < 26 ? (char)('a' + drawn) : drawn < 34 ? ' ' : drawn < 36 ? '\n' : 'e';
	}
}

static int is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t';
}

static size_t count_words(const char *at)
{
	size_t words = 0;
	int inside = 0;

	for (; *at; at++) {
		if (is_space(*at)) {
			inside = 0;
		} else if (!inside) {
			inside = 1;
			words++;
		}
	}
	return words;
}

static void turn_words(char *at)
{
	while (*at) {
		char *end = at;
		while (*end && !is_space(*end))
			end++;
		for (char *first = at, *last = end; first + 1 < last;) {
			const char swapped = *first;
			*first++ = *--last;
			*last = swapped;
		}
		at = *end ? end + 1 : end;
	}
}

static size_t find_all(const char *at, const char *wanted)
{
	size_t found = 0;

	for (; *at; at++) {
		const char *here = at, *there = wanted;
		while (*there && *here == *there) {
			here++;
			there++;
		}
		found += *there == '\0';
	}
	return found;
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	uint64_t sum = 0;

	memcpy(copy, text, sizeof(text));
	for (int i = 0; i < 4; i++) {
		turn_words(copy);
		sum = sum * 31 + count_words(copy);
		sum = sum * 31 + find_all(copy, "ee");
		sum += find_all(copy, "a e");
	}
	return sum;
}
