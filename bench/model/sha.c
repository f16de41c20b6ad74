/* The compression function of SHA-256 (FIPS 180-4), over a buffer. */
#include "work.h"

enum { LENGTH = 65536 };
static unsigned char buffer[LENGTH];
static uint32_t constants[64];

static uint32_t rotate(uint32_t word, int bits)
{
	return word >> bits | word << (32 - bits);
}

static void prepare(uint64_t state)
{
	for (int i = 0; i < 64; i++)
		constants[i] = draw(&state);
	for (size_t i = 0; i < LENGTH; i++)
		buffer[i] = (unsigned char)draw(&state);
}

static void compress(uint32_t *hash, const unsigned char *block)
{
	uint32_t w[64], s[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(s, hash, sizeof(s));
	for (int i = 0; i < 64; i++) {
		const uint32_t one = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
				     ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
		const uint32_t two = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
				     ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
		memmove(s + 1, s, 7 * sizeof(*s));
		s[4] += one;
		s[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		hash[i] += s[i];
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	uint32_t hash[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	for (size_t at = 0; at < LENGTH; at += 64)
		compress(hash, buffer + at);
	return (uint64_t)hash[0] << 32 | hash[7];
}
