/* Text, compressed by bzip2. */
#include <bzlib.h>

#include "text.h"

enum { SIZE = 50000 };

uint64_t work(uint64_t seed)
{
	static char text[SIZE], packed[2 * SIZE];
	unsigned int size = sizeof(packed);

	text_fill(text, SIZE, seed);
	BZ2_bzBuffToBuffCompress(packed, &size, text, SIZE, 1, 0, 0);
	return text_sum(packed, size);
}
