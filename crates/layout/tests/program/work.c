#include <stdio.h>

#include "work.h"

#define NOINLINE __attribute__((noinline))

NOINLINE static unsigned shuffle(unsigned value)
{
	for (int bit = 0; bit < 8; bit++) {
		if (value & (1u << bit))
			value += 0x9e37u << bit;
		else if ((value >> bit) % 5 == 4)
			value ^= 0xa5;
	}
	return value;
}

NOINLINE unsigned mix(unsigned value)
{
	if (value > 0xfffffff0u)
		report("large", 1);
	return shuffle(value) + 1;
}

NOINLINE unsigned work(unsigned value, int rounds)
{
	while (rounds-- > 0) {
		if (value & 0x100)
			value = mix(value);
		else if (value & 0x80)
			value = shuffle(value) * 3;
		else
			value += 0x123;
	}
	return value;
}

NOINLINE void report(const char *what, int number)
{
	fprintf(stderr, "%s %d\n", what, number);
}
