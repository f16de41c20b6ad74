/* LZ77 with a hash of three bytes, and back again. */
#include "work.h"

enum { LENGTH = 60000, HASHES = 4096, WINDOW = 8192, LONGEST = 64 };
static unsigned char given[LENGTH], packed[2 * LENGTH], unpacked[LENGTH];

static void prepare(uint64_t state)
{
	for (size_t i = 0; i < LENGTH;) {
		const uint32_t drawn = draw(&state);
		if (i > 1000 && drawn % 3) {
			const size_t from = i - 1 - draw(&state) % 900;
			for (size_t n = 4 + drawn % 20; n > 0 && i < LENGTH; n--, i++)
				given[i] = given[from + (drawn % 20 - n % 20) % 4];
		} else {
			given[i++] = (unsigned char)(drawn >> 8 & 0x1f);
		}
	}
}

static size_t match(size_t at, size_t from)
{
	size_t length = 0;

	while (at + length < LENGTH && length < LONGEST && given[at + length] == given[from + length])
		length++;
	return length;
}

static size_t pack(void)
{
	static size_t heads[HASHES];
	size_t out = 0;

	memset(heads, 0, sizeof(heads));
	for (size_t at = 0; at < LENGTH;) {
		size_t length = 0, from = 0;
		if (at + 3 < LENGTH) {
			const uint32_t hash = (given[at] * 289u + given[at + 1] * 17u + given[at + 2]) % HASHES;
			from = heads[hash];
			if (from > 0 && at - (from - 1) < WINDOW)
				length = match(at, from - 1);
			heads[hash] = at + 1;
		}
		if (length >= 4) {
			const size_t distance = at - (from - 1);
			packed[out++] = (unsigned char)(0x80 | (length - 1));
			packed[out++] = (unsigned char)(distance & 0xff);
			packed[out++] = (unsigned char)(distance >> 8);
			at += length;
		} else {
			packed[out++] = given[at++];
		}
	}
	return out;
}

static void unpack(size_t size)
{
	size_t out = 0;

	for (size_t at = 0; at < size;) {
		if (packed[at] & 0x80) {
			const size_t length = (packed[at] & 0x7f) + 1u;
			const size_t distance = packed[at + 1] | (size_t)packed[at + 2] << 8;
			for (size_t i = 0; i < length; i++, out++)
				unpacked[out] = unpacked[out - distance];
			at += 3;
		} else {
			unpacked[out++] = packed[at++];
		}
	}
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	uint64_t sum = 0;

	for (int i = 0; i < 3; i++) {
		const size_t size = pack();
		unpack(size);
		sum = sum * 31 + size + (uint64_t)(memcmp(given, unpacked, LENGTH) == 0);
	}
	return sum;
}
