/* A large switch over what a random sequence asks for; some are asked for often. */
#include "work.h"

enum { LENGTH = 60000 };
static unsigned char sequence[LENGTH];

static void prepare(uint64_t state)
{
	for (size_t i = 0; i < LENGTH; i++) {
		const uint32_t drawn = draw(&state);
		sequence[i] = (unsigned char)(drawn % 4 ? drawn / 4 % 6 : drawn / 4 % 48);
	}
}

#define CASE(n)                                                                    \
	case n:                                                                    \
		sum = (sum << (n % 13 + 1) | sum >> (63 - n % 13)) + 0x9e37u * (n + 1); \
		if (sum & (1u << n % 29))                                          \
			sum ^= (uint64_t)(n) << 20;                                  \
		break;
#define CASES(n) CASE(n) CASE((n + 1)) CASE((n + 2)) CASE((n + 3)) CASE((n + 4)) CASE((n + 5)) CASE((n + 6)) CASE((n + 7))

uint64_t work(uint64_t seed)
{
	prepare(seed);

	uint64_t sum = 1;

	for (int round = 0; round < 4; round++)
		for (size_t i = 0; i < LENGTH; i++)
			switch (sequence[i]) {
				CASES(0)
				CASES(8)
				CASES(16)
				CASES(24)
				CASES(32)
				CASES(40)
			}
	return sum;
}
