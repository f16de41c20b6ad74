/* Long numbers: factorials and powers, multiplied and divided by digits of 32 bits. */
#include "work.h"

enum { DIGITS = 400 };

static void multiply_small(uint32_t *number, uint32_t by)
{
	uint64_t carry = 0;

	for (int i = 0; i < DIGITS; i++) {
		carry += (uint64_t)number[i] * by;
		number[i] = (uint32_t)carry;
		carry >>= 32;
	}
}

static uint32_t divide_small(uint32_t *number, uint32_t by)
{
	uint64_t rest = 0;

	for (int i = DIGITS - 1; i >= 0; i--) {
		rest = rest << 32 | number[i];
		number[i] = (uint32_t)(rest / by);
		rest %= by;
	}
	return (uint32_t)rest;
}

static void multiply(uint32_t *product, const uint32_t *left, const uint32_t *right)
{
	memset(product, 0, DIGITS * sizeof(*product));
	for (int i = 0; i < DIGITS; i++) {
		uint64_t carry = 0;
		if (left[i] == 0)
			continue;
		for (int k = 0; i + k < DIGITS; k++) {
			carry += (uint64_t)left[i] * right[k] + product[i + k];
			product[i + k] = (uint32_t)carry;
			carry >>= 32;
		}
	}
}

uint64_t work(uint64_t seed)
{
	uint32_t one[DIGITS] = {1}, other[DIGITS] = {(uint32_t)seed | 3}, product[DIGITS];
	uint64_t state = seed, sum = 0;

	for (int i = 0; i < 400; i++)
		multiply_small(one, draw(&state) % 500 + 2);
	for (int i = 0; i < 6; i++) {
		multiply(product, other, other);
		memcpy(other, product, sizeof(other));
	}
	for (int i = 0; i < 5; i++) {
		multiply(product, one, other);
		sum += product[DIGITS / 2];
	}
	for (int i = 0; i < 300; i++)
		sum = sum * 31 + divide_small(one, 1000000000);
	return sum;
}
