/* Text that Zstandard compressed, decompressed many times. */
#include <zstd.h>

#include "text.h"

enum { SIZE = 40000, TIMES = 30 };

uint64_t work(uint64_t seed)
{
	static char text[SIZE], packed[2 * SIZE], unpacked[SIZE];
	uint64_t sum = 0;

	text_fill(text, SIZE, seed);
	const size_t size = ZSTD_compress(packed, sizeof(packed), text, SIZE, 1);
	for (int i = 0; i < TIMES; i++)
		sum += text_sum(unpacked, ZSTD_decompress(unpacked, SIZE, packed, size));
	return sum;
}
