/* Text that LZ4 compressed, decompressed many times. */
#include <lz4.h>

#include "text.h"

enum { SIZE = 40000, TIMES = 60 };

uint64_t work(uint64_t seed)
{
	static char text[SIZE], packed[2 * SIZE], unpacked[SIZE];
	uint64_t sum = 0;

	text_fill(text, SIZE, seed);
	const int size = LZ4_compress_default(text, packed, SIZE, sizeof(packed));
	for (int i = 0; i < TIMES; i++)
		sum += text_sum(unpacked, (size_t)LZ4_decompress_safe(packed, unpacked, size, SIZE));
	return sum;
}
