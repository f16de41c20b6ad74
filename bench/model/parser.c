/* Arithmetic expressions, parsed by descent and evaluated. */
#include "work.h"

enum { LENGTH = 100000 };
static char text[LENGTH + 64];
static const char *at;

static void put(uint64_t *state, size_t *end, int depth)
{
	const uint32_t drawn = draw(state);

	if (depth == 0 || drawn % 4 == 0) {
		for (uint32_t n = 1 + drawn / 4 % 3; n > 0; n--)
			text[(*end)++] = (char)('1' + draw(state) % 9);
		return;
	}
	if (drawn % 4 == 1)
		text[(*end)++] = '(';
	put(state, end, depth - 1);
	text[(*end)++] = "+-*/+-"[drawn / 16 % 6];
	put(state, end, depth - 1);
	if (drawn % 4 == 1)
		text[(*end)++] = ')';
}

static void prepare(uint64_t state)
{
	size_t end = 0;

	while (end + 2000 < LENGTH) {
		put(&state, &end, 6);
		text[end++] = ';';
	}
	text[end] = '\0';
}

static int64_t sum_of(void);

static int64_t factor(void)
{
	int64_t value = 0;

	if (*at == '(') {
		at++;
		value = sum_of();
		at++;
		return value;
	}
	if (*at == '-') {
		at++;
		return -factor();
	}
	while (*at >= '0' && *at <= '9')
		value = value * 10 + (*at++ - '0');
	return value;
}

static int64_t product(void)
{
	int64_t value = factor();

	for (;;) {
		if (*at == '*') {
			at++;
			value = (int64_t)((uint64_t)value * (uint64_t)factor());
		} else if (*at == '/') {
			at++;
			const int64_t divisor = factor();
			value = divisor != 0 && divisor != -1 ? value / divisor : 0;
		} else {
			return value;
		}
	}
}

static int64_t sum_of(void)
{
	int64_t value = product();

	for (;;) {
		if (*at == '+') {
			at++;
			value = (int64_t)((uint64_t)value + (uint64_t)product());
		} else if (*at == '-') {
			at++;
			value = (int64_t)((uint64_t)value - (uint64_t)product());
		} else {
			return value;
		}
	}
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	uint64_t sum = 0;

	at = text;
	while (*at) {
		sum = sum * 31 + (uint64_t)sum_of();
		at++;
	}
	return sum;
}
