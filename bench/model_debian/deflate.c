/* Text, compressed by zlib. */
#include <zlib.h>

#include "text.h"

enum { SIZE = 60000 };

uint64_t work(uint64_t seed)
{
	static char text[SIZE];
	static Bytef packed[2 * SIZE];
	uLongf size = sizeof(packed);

	text_fill(text, SIZE, seed);
	compress2(packed, &size, (const Bytef *)text, SIZE, 6);
	return text_sum(packed, size);
}
