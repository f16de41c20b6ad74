/* Control flow of many kinds, with a checksum that every layout must give. */
#include <stdio.h>

#include "work.h"

#define NOINLINE __attribute__((noinline))

static unsigned state = 12345;

NOINLINE unsigned next_number(void)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

/* The same name as a function in work.c. */
NOINLINE static unsigned shuffle(unsigned value)
{
	if (value % 7 == 3) {
		value += next_number() & 3;
		if (value & 64)
			value ^= 0x55;
	} else if (value % 11 == 5) {
		value = value * 3 + 1;
	}
	return value;
}

NOINLINE unsigned classify(unsigned value)
{
	switch (value % 13) {
	case 0: return value / 2 + mix(value);
	case 1: return value * 5;
	case 2: return shuffle(value) ^ 9;
	case 4: return value - 17;
	case 7: return shuffle(value + 4) + 1;
	case 8: return ~value;
	case 11: return mix(value ^ 77);
	default: return value + 2;
	}
}

NOINLINE int collatz(unsigned value)
{
	int steps = 0;

	while (value != 1 && steps < 200) {
		if (value & 1) {
			value = value * 3 + 1;
			if (value == 0)
				return -1;
		} else {
			value /= 2;
		}
		steps++;
		if (steps == 190)
			report("long", steps);
	}
	return steps;
}

NOINLINE unsigned nested(unsigned limit)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < limit; i++) {
		for (unsigned j = i; j < limit; j += 3) {
			if ((i ^ j) & 4)
				sum += classify(i * j);
			else if (j > 90)
				break;
			else
				sum ^= j;
		}
		if (sum == 0xdead)
			report("sum", (int)sum);
	}
	return sum;
}

NOINLINE unsigned recurse(unsigned depth)
{
	if (depth == 0)
		return 1;
	if (depth & 8)
		return recurse(depth - 1) + shuffle(depth);
	return recurse(depth - 1) ^ depth;
}

int main(void)
{
	unsigned sum = 0;

	for (int i = 0; i < 40; i++) {
		sum += nested(20 + next_number() % 30);
		sum ^= (unsigned)collatz(sum | 1);
		sum += recurse(sum & 31);
		sum = work(sum, i);
	}
	printf("%u\n", sum);
	return 0;
}
