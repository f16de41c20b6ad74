/* A program with inlined calls in several depths, loops, a switch and macros. */
#include "shared.h"

extern int other(int value);
extern int deeper(int value, int times);
volatile int sink;

static int scale(int value)
{
	return value * 3 + (value & 1 ? 7 : 11);
}

static inline __attribute__((always_inline)) int fold(int value, int limit)
{
	int sum = 0;
	for (int i = 0; i < limit; i++)
		sum += clamp_to(scale(value + i), 100) ? i : STEP(i);
	return sum;
}

__attribute__((noinline)) int choose(int value)
{
	switch (value & 7) {
	case 0: return fold(value, 3);
	case 1: return other(value) + 1;
	case 2: return fold(value, value);
	case 3: sink = value; return deeper(value, 2);
	case 4: return scale(scale(value));
	case 5: if (value > 100) return 3; else sink = 4; return 9;
	default: return STEP(value) + STEP(value + 1);
	}
}

__attribute__((cold, noinline)) int rare(int value)
{
	sink = value;
	return fold(value, 9);
}

int main(int count, char **words)
{
	int total = 0;
	(void)words;
	for (int i = 0; i < count * 10; i++) {
		total += choose(i);
		if (__builtin_expect(total < 0, 0))
			total += rare(total);
	}
	return total & 127;
}

void _start(void)
{
	main(3, 0);
	for (;;)
		;
}
