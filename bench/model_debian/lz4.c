/* Text, compressed by LZ4 several times. */
#include <lz4.h>

#include "text.h"

enum { SIZE = 60000, TIMES = 5 };

uint64_t work(uint64_t seed)
{
	static char text[SIZE], packed[2 * SIZE];
	uint64_t sum = 0;

	text_fill(text, SIZE, seed);
	for (int i = 0; i < TIMES; i++) {
		const int size = LZ4_compress_default(text + i, packed, SIZE - i, sizeof(packed));
		sum += text_sum(packed, (size_t)size);
	}
	return sum;
}
