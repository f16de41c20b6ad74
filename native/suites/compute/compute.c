/*
 * compute: six loads in user space, as the control of an evaluation: no kernel can make them
 * faster, so a difference here is noise or an error. Every load has one known result, which does
 * not depend on the machine.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <string.h>

#include "../case.h"

const char suite_name[] = "compute";

/* A known sequence, the same on every machine (Marsaglia's xorshift). */
static uint32_t next_number(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* sieve: the primes below a limit, by the sieve of Eratosthenes. */

#define SIEVE_LIMIT 65536
#define SIEVE_PRIMES 6542

static uint64_t sieve(void)
{
	static unsigned char composite[SIEVE_LIMIT];
	uint64_t primes = 0;

	memset(composite, 0, sizeof(composite));
	for (unsigned i = 2; i < SIEVE_LIMIT; i++) {
		if (composite[i])
			continue;
		primes++;
		for (unsigned long j = (unsigned long)i * i; j < SIEVE_LIMIT; j += i)
			composite[j] = 1;
	}
	return primes;
}

/* loop: nested loops fill and sort an array; the sum of differences is known. */

#define LOOP_LENGTH 512

static uint64_t loop(void)
{
	uint32_t numbers[LOOP_LENGTH];
	uint32_t state = 1;

	for (unsigned i = 0; i < LOOP_LENGTH; i++)
		numbers[i] = next_number(&state) % 100000;
	for (unsigned i = 1; i < LOOP_LENGTH; i++) {
		const uint32_t number = numbers[i];
		unsigned at = i;
		for (; at > 0 && numbers[at - 1] > number; at--)
			numbers[at] = numbers[at - 1];
		numbers[at] = number;
	}
	return checksum(numbers, sizeof(numbers));
}

/* logic: unpredictable decisions in a small state machine. */

#define LOGIC_STEPS 100000

static uint64_t logic(void)
{
	uint32_t state = 2463534242u;
	unsigned at = 0;
	uint64_t visits[4] = {0};

	for (unsigned i = 0; i < LOGIC_STEPS; i++) {
		const uint32_t drawn = next_number(&state);
		if (at == 0)
			at = (drawn & 1) ? 1 : 2;
		else if (at == 1)
			at = (drawn & 6) == 6 ? 3 : (drawn & 8) ? 0 : 1;
		else if (at == 2)
			at = (drawn % 3 == 0) ? 0 : 3;
		else
			at = (drawn & 0x10) && !(drawn & 0x20) ? 2 : 0;
		visits[at]++;
	}
	return checksum(visits, sizeof(visits));
}

/*
 * string: long strings are concatenated, moved as they grow, reversed and searched. They are in one
 * arena, because allocating and freeing memory would be the kernel's work.
 */

#define STRING_WORDS 2000
#define ARENA 65536

static uint64_t string(void)
{
	static const char *const words[] = {"profile", "kernel", "branch", "layout"};
	static char arena[ARENA];
	char *text = arena;
	size_t size = 0;
	size_t capacity = 0;
	uint64_t found = 0;

	for (unsigned i = 0; i < STRING_WORDS; i++) {
		const char *word = words[(i * 7 + i / 5) % 4];
		const size_t length = strlen(word);
		if (size + length + 2 > capacity) {
			/* Each block is after the previous one, and larger. */
			char *larger = text + capacity;
			capacity = capacity * 2 + 64;
			if (larger + capacity > arena + ARENA)
				return 0;
			memcpy(larger, text, size);
			text = larger;
		}
		memcpy(text + size, word, length);
		size += length;
		text[size++] = ' ';
		text[size] = '\0';
	}
	for (const char *at = text; (at = strstr(at, "branch")) != NULL; at++)
		found++;
	for (size_t i = 0, j = size - 1; i < j; i++, j--) {
		const char held = text[i];
		text[i] = text[j];
		text[j] = held;
	}
	return checksum(text, size) ^ found;
}

/* method: calls, by recursion and through pointers. */

#define METHOD_DEPTH 18

static unsigned long fibonacci(unsigned n);
static unsigned long (*volatile through)(unsigned) = fibonacci;

static unsigned long fibonacci(unsigned n)
{
	return n < 2 ? n : through(n - 1) + through(n - 2);
}

static uint64_t method(void)
{
	return fibonacci(METHOD_DEPTH);
}

/*
 * float: points are rotated around an axis and back, and must return. Rotation multiplies by an
 * exact pair (3/5, 4/5), so the result is exact up to a small error.
 */

#define POINTS 1000
#define TURNS 20

static uint64_t floating(void)
{
	static double points[POINTS][3];
	double worst = 0;

	for (int i = 0; i < POINTS; i++) {
		points[i][0] = i;
		points[i][1] = sqrt(i);
		points[i][2] = 1.0 / (i + 1);
	}
	for (int turn = 0; turn < 2 * TURNS; turn++) {
		const double sine = turn < TURNS ? 0.8 : -0.8;
		const double cosine = 0.6;
		for (int i = 0; i < POINTS; i++) {
			const double x = points[i][0];
			const double y = points[i][1];
			points[i][0] = cosine * x - sine * y;
			points[i][1] = sine * x + cosine * y;
			points[i][2] = -points[i][2];
		}
	}
	for (int i = 0; i < POINTS; i++) {
		const double off = fabs(points[i][0] - i) + fabs(points[i][1] - sqrt(i)) +
				   fabs(points[i][2] - 1.0 / (i + 1));
		worst = off > worst ? off : worst;
	}
	return worst < 1e-9;
}

struct load {
	const char *name;
	uint64_t (*work)(void);
	uint64_t result;
};

static const struct load loads[] = {
	{"sieve", sieve, SIEVE_PRIMES},
	{"loop", loop, 0xf797dd935f166e00u},
	{"logic", logic, 0xd745c152c35549c5u},
	{"string", string, 0x25be65d539728ce5u},
	{"method", method, 2584},
	{"float", floating, 1},
};

static bool repeat(const struct load *load, unsigned long times)
{
	for (unsigned long i = 0; i < times; i++)
		if (load->work() + damaged() != load->result) {
			errno = 0;
			return fault("the result of the computation");
		}
	return true;
}

static bool run(const struct suite_case *is, unsigned long operations)
{
	const struct load *load = &loads[is->size];

	if (!repeat(load, 1))
		return false;
	measure_begin();
	const bool sound = repeat(load, operations);
	measure_end();
	return sound;
}

/* The size of a case is the index of its load. */
const struct suite_case suite_cases[] = {
	{"sieve", 60, 0, 1, run},  {"loop", 60, 1, 1, run},    {"logic", 20, 2, 1, run},
	{"string", 60, 3, 1, run}, {"method", 300, 4, 1, run}, {"float", 80, 5, 1, run},
};
const size_t suite_case_count = sizeof(suite_cases) / sizeof(suite_cases[0]);
