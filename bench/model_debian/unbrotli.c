/* Text that Brotli compressed, decompressed several times. */
#include <brotli/decode.h>
#include <brotli/encode.h>

#include "text.h"

enum { SIZE = 30000, TIMES = 12 };

uint64_t work(uint64_t seed)
{
	static char text[SIZE];
	static uint8_t packed[2 * SIZE], unpacked[SIZE];
	size_t size = sizeof(packed);
	uint64_t sum = 0;

	text_fill(text, SIZE, seed);
	BrotliEncoderCompress(2, 18, BROTLI_MODE_TEXT, SIZE, (const uint8_t *)text, &size, packed);
	for (int i = 0; i < TIMES; i++) {
		size_t length = SIZE;
		BrotliDecoderDecompress(size, packed, &length, unpacked);
		sum += text_sum(unpacked, length);
	}
	return sum;
}
