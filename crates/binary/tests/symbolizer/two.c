#include "shared.h"
extern volatile int sink;

/* Calls itself in tail position: a loop with inlined copies of itself. */
int deeper(int value, int times)
{
	if (!times)
		return clamp_to(value, 50);
	sink = times;
	return deeper(value + times, times - 1) + clamp_to(times, 2);
}

int other(int value)
{
	int sum = value;
	while (value-- > 0)
		sum ^= clamp_to(value * 5, 77) + (value & 3 ? sink : 1);
	return sum;
}
