/* Text, compressed by Zstandard in level 6. */
#include <zstd.h>

#include "text.h"

enum { SIZE = 60000 };

uint64_t work(uint64_t seed)
{
	static char text[SIZE], packed[2 * SIZE];

	text_fill(text, SIZE, seed);
	return text_sum(packed, ZSTD_compress(packed, sizeof(packed), text, SIZE, 6));
}
