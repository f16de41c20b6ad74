/* Regular expressions, compiled by PCRE2 and matched by its interpreter. */
#include <pcre2.h>

#include "text.h"

/* Debian's package has these tables under a name that is not C. */
#include "pcre2_chartables.c.dist"

enum { SIZE = 12000 };

uint64_t work(uint64_t seed)
{
	static const char *const patterns[] = {
		"\\b(\\w+)ri(\\w*)\\b", "(?:ta|mo|se)+n?o", "([a-z]+) \\1", "(?i)WER[^,\\n]*,",
		"(?<=lu)ke|an(?!do)", "^(\\w+ )+ei", "[aeiou]{2}[^aeiou]{1,3}\\s",
	};
	static char text[SIZE];
	uint64_t sum = 0;

	text_fill(text, SIZE, seed);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		int error;
		PCRE2_SIZE at, offset = 0;
		pcre2_code *code = pcre2_compile((PCRE2_SPTR)patterns[i], PCRE2_ZERO_TERMINATED,
						 PCRE2_MULTILINE, &error, &at, NULL);
		pcre2_match_data *found = pcre2_match_data_create_from_pattern(code, NULL);
		while (offset < SIZE &&
		       pcre2_match(code, (PCRE2_SPTR)text, SIZE, offset, 0, found, NULL) > 0) {
			const PCRE2_SIZE *where = pcre2_get_ovector_pointer(found);
			sum = sum * 31 + where[0];
			offset = where[1] > offset ? where[1] : offset + 1;
		}
		pcre2_match_data_free(found);
		pcre2_code_free(code);
	}
	return sum;
}
