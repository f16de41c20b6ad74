/* Text like that of a language, of words that some use more than others, drawn from a seed. */
#ifndef MEPOF_MODEL_TEXT_H
#define MEPOF_MODEL_TEXT_H

#include "work.h"

static inline uint32_t text_word(uint64_t *state)
{
	const uint32_t drawn = draw(state);

	/* The smaller, the more often. */
	return drawn % (1 + (drawn >> 8) % 700);
}

/* Writes a word without its end, and returns its length: 2 to 9. */
static inline size_t text_spell(char *to, uint32_t word)
{
	static const char *const parts[] = {"ta", "ri", "mo", "se", "in", "lu", "ke", "an",
					    "do", "wer", "st", "ei", "pra", "no", "chi", "ul"};
	size_t end = 0;

	for (uint32_t left = word + 16; left > 0; left /= 16) {
		const char *part = parts[left % 16];
		memcpy(to + end, part, strlen(part));
		end += strlen(part);
	}
	return end;
}

/* Fills `size` bytes, without an end. */
static inline void text_fill(char *to, size_t size, uint64_t seed)
{
	uint64_t state = seed + 1;
	char word[16];

	for (size_t end = 0; end < size;) {
		size_t length = text_spell(word, text_word(&state));
		const uint32_t drawn = draw(&state);
		word[length++] = drawn % 11 == 0 ? ',' : drawn % 17 == 0 ? '\n' : ' ';
		if (length > size - end)
			length = size - end;
		memcpy(to + end, word, length);
		end += length;
	}
}

static inline uint64_t text_sum(const void *data, size_t size)
{
	const unsigned char *bytes = data;
	uint64_t sum = size;

	for (size_t i = 0; i < size; i += 61)
		sum = sum * 31 + bytes[i];
	return sum;
}

#endif
