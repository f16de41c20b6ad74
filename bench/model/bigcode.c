/* A thousand functions, of which a call leads to the next in an order that is no order. */
#include "work.h"

enum { FUNCTIONS = 1024 };

#define FUNCTION(n)                                                                          \
	static __attribute__((noinline)) uint64_t function_##n(uint64_t sum, uint64_t seed)  \
	{                                                                                    \
		if (seed == 0x5eed) { /* never */                                            \
			for (int i = 0; i < 8; i++)                                          \
				sum = sum * (seed + 0x##n) + (sum >> 7 ^ 0x##n##u);          \
			sum ^= sum << 5;                                                     \
		}                                                                            \
		sum += seed ^ 0x##n##u;                                                      \
		sum = (sum << 7 | sum >> 57) * 0x9e3779b97f4a7c15u;                          \
		if ((sum & 0x1000) && 0x##n % 3)                                             \
			sum ^= 0x##n##u * 77u;                                               \
		return sum;                                                                  \
	}
#define ENTRY(n) function_##n,
#define SIXTEEN(M, n)                                                                               \
	M(n##0) M(n##1) M(n##2) M(n##3) M(n##4) M(n##5) M(n##6) M(n##7) M(n##8) M(n##9) M(n##a) M(n##b) \
		M(n##c) M(n##d) M(n##e) M(n##f)
#define MANY(M, n)                                                                            \
	SIXTEEN(M, n##0)                                                                      \
	SIXTEEN(M, n##1)                                                                      \
	SIXTEEN(M, n##2)                                                                      \
	SIXTEEN(M, n##3)                                                                      \
	SIXTEEN(M, n##4)                                                                      \
	SIXTEEN(M, n##5)                                                                      \
	SIXTEEN(M, n##6)                                                                      \
	SIXTEEN(M, n##7)                                                                      \
	SIXTEEN(M, n##8)                                                                      \
	SIXTEEN(M, n##9)                                                                      \
	SIXTEEN(M, n##a)                                                                      \
	SIXTEEN(M, n##b)                                                                      \
	SIXTEEN(M, n##c)                                                                      \
	SIXTEEN(M, n##d)                                                                      \
	SIXTEEN(M, n##e)                                                                      \
	SIXTEEN(M, n##f)
#define ALL(M) MANY(M, 0) MANY(M, 1) MANY(M, 2) MANY(M, 3)

ALL(FUNCTION)
static uint64_t (*const functions[])(uint64_t, uint64_t) = {ALL(ENTRY)};
static uint16_t order[FUNCTIONS / 2];

static void prepare(uint64_t state)
{
	/* Half of them are called, which lie among those that are not. */
	for (size_t i = 0; i < FUNCTIONS / 2; i++)
		order[i] = (uint16_t)(draw(&state) % FUNCTIONS);
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	uint64_t sum = 1;

	for (int round = 0; round < 300; round++)
		for (size_t i = 0; i < FUNCTIONS / 2; i++)
			sum = functions[order[i]](sum, i);
	return sum;
}
