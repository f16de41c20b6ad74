/* Text that zlib compressed, decompressed several times. */
#include <zlib.h>

#include "text.h"

enum { SIZE = 30000, TIMES = 20 };

uint64_t work(uint64_t seed)
{
	static char text[SIZE];
	static Bytef packed[2 * SIZE], unpacked[SIZE];
	uLongf size = sizeof(packed);
	uint64_t sum = 0;

	text_fill(text, SIZE, seed);
	compress2(packed, &size, (const Bytef *)text, SIZE, 1);
	for (int i = 0; i < TIMES; i++) {
		uLongf length = SIZE;
		uncompress(unpacked, &length, packed, size);
		sum += text_sum(unpacked, length);
	}
	return sum;
}
