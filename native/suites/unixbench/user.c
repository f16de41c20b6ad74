/*
 * Loads of the processor, like Dhrystone (records, strings, calls) and Whetstone (floating-point
 * arrays and functions). Their numbers do not compare with anybody else's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unixbench.h"

static bool nothing(const struct suite_case *is)
{
	(void)is;
	return true;
}

static bool nothing_left(const struct suite_case *is, unsigned long operations)
{
	(void)is;
	(void)operations;
	return true;
}

/* dhry */

enum kind { FIRST, SECOND, THIRD };

struct record {
	struct record *next;
	enum kind kind;
	int number;
	char text[32];
};

static struct record *volatile head;
static int array[64];
static int table[16][16];

__attribute__((noinline)) static enum kind turn(enum kind kind, int number)
{
	switch (kind) {
	case FIRST:
		return number > 40 ? SECOND : THIRD;
	case SECOND:
		return THIRD;
	default:
		return FIRST;
	}
}

__attribute__((noinline)) static int fill(int *line, int (*square)[16], int at, int value)
{
	const int row = at % 16;

	line[at % 64] = value;
	line[(at + 1) % 64] = line[at % 64];
	for (int i = 0; i < 2; i++)
		square[row][(row + i) % 16] = at;
	square[(row + 1) % 16][row] += 1;
	return line[(at + 1) % 64];
}

__attribute__((noinline)) static bool before(const char *one, const char *two)
{
	return strcmp(one, two) < 0;
}

static unsigned long records(unsigned long loops)
{
	struct record one = {.kind = FIRST, .text = "A RECORD, THE FIRST ONE"};
	struct record two = {.next = &one, .kind = SECOND, .text = "A RECORD, THE OTHER ONE"};
	unsigned long sum = 0;

	head = &two;
	for (unsigned long i = 0; i < loops; i++) {
		struct record *record = head;
		*record->next = *record;
		record->next->number = (int)(i & 63);
		record->next->kind = turn(record->kind, record->next->number);
		strcpy(record->next->text, "A RECORD, THE FIRST ONE");
		sum += before(record->next->text, record->text);
		sum += (unsigned long)fill(array, table, (int)(i & 63), (int)(i % 7));
		record->kind = turn(record->next->kind, record->number);
		record->next->next = record;
		record->next = &one;
	}
	return sum;
}

static bool work_dhry(const struct suite_case *is, unsigned long operations)
{
	unsigned long expected = 0;

	(void)is;
	for (unsigned long i = 0; i < operations; i++)
		expected += 1 + i % 7;
	errno = 0;
	return records(operations) == expected + damaged() || fault("the sum over the records");
}

const struct load load_dhry = {nothing, work_dhry, nothing_left};

/* whet: the modules of the original, each as often as for 100,000 of its instructions. */

static volatile double half = 0.499975;
static volatile double two = 2.0;

__attribute__((noinline)) static void mix(double *elements)
{
	for (int i = 0; i < 6; i++) {
		elements[0] = (elements[0] + elements[1] + elements[2] - elements[3]) * half;
		elements[1] = (elements[0] + elements[1] - elements[2] + elements[3]) * half;
		elements[2] = (elements[0] - elements[1] + elements[2] + elements[3]) * half;
		elements[3] = (-elements[0] + elements[1] + elements[2] + elements[3]) / two;
	}
}

__attribute__((noinline)) static void step(double x, double y, double *z)
{
	const double once = half * (x + y);
	const double twice = half * (once + y);

	*z = (once + twice) / two;
}

static double whetstone(void)
{
	double elements[4] = {1, -1, -1, -1};
	double x = 0.5;
	double y = 0.5;
	double z = 1;
	int j = 1;
	int k = 2;
	int l = 3;

	for (int i = 0; i < 12 + 14; i++)
		mix(elements);
	for (int i = 0; i < 345; i++)
		j = j == 1 ? 2 : 3 - (j > 2);
	for (int i = 0; i < 210; i++) {
		j = j * (k - j) * (l - k);
		k = l * k - (l - j) * k;
		l = (l - k) * (k + j);
		elements[(l & 3)] = j + k + l;
		j = 1;
		k = 2;
		l = 3;
	}
	for (int i = 0; i < 32; i++) {
		x = half * atan(two * sin(x) * cos(x) / (cos(x + y) + cos(x - y) - 1.0));
		y = half * atan(two * sin(y) * cos(y) / (cos(x + y) + cos(x - y) - 1.0));
	}
	for (int i = 0; i < 899; i++)
		step(x, y, &z);
	for (int i = 0; i < 616; i++) {
		elements[0] = elements[1];
		elements[1] = elements[2];
		elements[2] = elements[0];
	}
	double root = 0.75;
	for (int i = 0; i < 93; i++)
		root = sqrt(exp(log(root) / 0.50000025));
	return x + y + z + root + elements[3] * 0 + j + k + l;
}

static bool work_whet(const struct suite_case *is, unsigned long operations)
{
	const double first = whetstone();

	(void)is;
	errno = 0;
	/* The same every time, and the limits that the functions must reach from these inputs. */
	for (unsigned long i = 0; i < operations; i++)
		if (whetstone() + damaged() != first)
			return fault("a sum of functions");
	return (first > 7.7 && first < 8.9) || fault("a sum of functions");
}

const struct load load_whet = {nothing, work_whet, nothing_left};
