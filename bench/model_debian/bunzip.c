/* Text that bzip2 compressed, decompressed several times. */
#include <bzlib.h>

#include "text.h"

enum { SIZE = 30000, TIMES = 4 };

uint64_t work(uint64_t seed)
{
	static char text[SIZE], packed[2 * SIZE], unpacked[SIZE];
	unsigned int size = sizeof(packed);
	uint64_t sum = 0;

	text_fill(text, SIZE, seed);
	BZ2_bzBuffToBuffCompress(packed, &size, text, SIZE, 1, 0, 0);
	for (int i = 0; i < TIMES; i++) {
		unsigned int length = SIZE;
		BZ2_bzBuffToBuffDecompress(unpacked, &length, packed, size, 0, 0);
		sum += text_sum(unpacked, length);
	}
	return sum;
}
