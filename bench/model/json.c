/* JSON read into a tree from an arena, and summed up. */
#include "work.h"

enum { LENGTH = 60000, NODES = 40000 };
static char text[LENGTH + 256];

enum type { NUMBER, STRING, LIST, OBJECT, TRUTH, NOTHING };

struct value {
	enum type type;
	int64_t number;
	struct value *first, *next;
};
static struct value arena[NODES];
static size_t used;
static const char *at;

static size_t put(char *to, uint64_t *state, int depth)
{
	static const char *const words[] = {"\"name\"", "\"a longer string\"", "true", "null", "false"};
	const uint32_t drawn = draw(state);
	size_t end = 0;

	if (depth == 0 || drawn % 3 == 0) {
		if (drawn & 8) {
			const char *word = words[drawn / 16 % 5];
			memcpy(to, word, strlen(word));
			return strlen(word);
		}
		for (uint32_t n = 1 + drawn / 16 % 5; n > 0; n--)
			to[end++] = (char)('1' + draw(state) % 9);
		return end;
	}
	const int is_object = drawn & 16;
	to[end++] = is_object ? '{' : '[';
	for (uint32_t n = 1 + drawn / 32 % 3; n > 0; n--) {
		if (is_object) {
			memcpy(to + end, "\"key\": ", 7);
			end += 7;
		}
		end += put(to + end, state, depth - 1);
		if (n > 1) {
			to[end++] = ',';
			to[end++] = ' ';
		}
	}
	to[end++] = is_object ? '}' : ']';
	return end;
}

static void prepare(uint64_t state)
{
	size_t end = 0;

	while (end + 6000 < LENGTH) {
		end += put(text + end, &state, 5);
		text[end++] = '\n';
	}
	text[end] = '\0';
}

static void skip_space(void)
{
	while (*at == ' ' || *at == '\n' || *at == '\t')
		at++;
}

static struct value *make(enum type type)
{
	struct value *value = &arena[used++];

	*value = (struct value){type, 0, NULL, NULL};
	return value;
}

static struct value *string(void)
{
	struct value *value = make(STRING);

	for (at++; *at != '"'; at++) {
		if (*at == '\\')
			at++;
		value->number = value->number * 31 + *at;
	}
	at++;
	return value;
}

static struct value *read(void)
{
	skip_space();
	if (*at == '"')
		return string();
	if (*at == '[' || *at == '{') {
		const char end = *at == '[' ? ']' : '}';
		struct value *value = make(*at == '[' ? LIST : OBJECT);
		struct value **link = &value->first;
		at++;
		for (skip_space(); *at != end; skip_space()) {
			if (end == '}') {
				skip_space();
				value->number += string()->number;
				skip_space();
				at++;
			}
			*link = read();
			link = &(*link)->next;
			skip_space();
			if (*at == ',')
				at++;
		}
		at++;
		return value;
	}
	if (*at >= '0' && *at <= '9') {
		struct value *value = make(NUMBER);
		while (*at >= '0' && *at <= '9')
			value->number = value->number * 10 + (*at++ - '0');
		return value;
	}
	struct value *value = make(*at == 'n' ? NOTHING : TRUTH);
	value->number = *at == 't';
	at += *at == 'f' ? 5 : 4;
	return value;
}

static int64_t sum_of(const struct value *value)
{
	int64_t sum = value->number;

	for (const struct value *child = value->first; child != NULL; child = child->next)
		sum += sum_of(child) * (value->type == LIST ? 1 : 2);
	return sum;
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	uint64_t sum = 0;

	for (int i = 0; i < 5; i++) {
		at = text;
		used = 0;
		for (skip_space(); *at; skip_space())
			sum = sum * 31 + (uint64_t)sum_of(read());
	}
	return sum;
}
