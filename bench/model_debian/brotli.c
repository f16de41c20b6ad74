/* Text, compressed by Brotli in quality 5. */
#include <brotli/encode.h>

#include "text.h"

enum { SIZE = 60000 };

uint64_t work(uint64_t seed)
{
	static char text[SIZE];
	static uint8_t packed[2 * SIZE];
	size_t size = sizeof(packed);

	text_fill(text, SIZE, seed);
	BrotliEncoderCompress(5, 18, BROTLI_MODE_TEXT, SIZE, (const uint8_t *)text, &size, packed);
	return text_sum(packed, size);
}
