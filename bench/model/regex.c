/* A matcher of regular expressions that tries one way after another: literals, . * + ? [a-z]. */
#include "work.h"

enum { LINES = 600, LENGTH = 80 };
static char lines[LINES][LENGTH];

static int matches_here(const char *pattern, const char *text);

static const char *item_end(const char *pattern)
{
	if (*pattern == '[')
		while (*pattern != ']')
			pattern++;
	return pattern + 1;
}

static int one(const char *pattern, char c)
{
	if (c == '\0')
		return 0;
	if (*pattern == '.')
		return 1;
	if (*pattern != '[')
		return *pattern == c;
	for (pattern++; *pattern != ']'; pattern++) {
		if (pattern[1] == '-') {
			if (c >= pattern[0] && c <= pattern[2])
				return 1;
			pattern += 2;
		} else if (*pattern == c) {
			return 1;
		}
	}
	return 0;
}

static int many(const char *item, const char *rest, const char *text, size_t least)
{
	size_t count = 0;

	while (one(item, text[count]))
		count++;
	for (;; count--) {
		if (count >= least && matches_here(rest, text + count))
			return 1;
		if (count <= least)
			return 0;
	}
}

static int matches_here(const char *pattern, const char *text)
{
	while (*pattern) {
		const char *end = item_end(pattern);
		if (*end == '*')
			return many(pattern, end + 1, text, 0);
		if (*end == '+')
			return many(pattern, end + 1, text, 1);
		if (*end == '?')
			return (one(pattern, *text) && matches_here(end + 1, text + 1)) ||
			       matches_here(end + 1, text);
		if (!one(pattern, *text))
			return 0;
		pattern = end;
		text++;
	}
	return 1;
}

static void prepare(uint64_t state)
{
	for (int i = 0; i < LINES; i++)
		for (int at = 0; at < LENGTH - 1; at++)
			lines[i][at] = "abcdefgh0123 ._-"[draw(&state) % 16];
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	static const char *const patterns[] = {"[a-d]+[0-9]+ ", "a.*b.*c.*0", "[a-h]*_[0-3]+-", "e?f?g?h"};
	uint64_t sum = 0;

	for (int pattern = 0; pattern < 4; pattern++)
		for (int i = 0; i < LINES; i++)
			for (int at = 0; at < LENGTH; at++)
				if (matches_here(patterns[pattern], lines[i] + at)) {
					sum = sum * 31 + (uint64_t)at;
					break;
				}
	return sum;
}
