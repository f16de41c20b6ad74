/* Text, compressed by LZ4 at its highest level but one. */
#include <lz4hc.h>

#include "text.h"

enum { SIZE = 40000 };

uint64_t work(uint64_t seed)
{
	static char text[SIZE], packed[2 * SIZE];

	text_fill(text, SIZE, seed);
	return text_sum(packed, (size_t)LZ4_compress_HC(text, packed, SIZE, sizeof(packed), 9));
}
