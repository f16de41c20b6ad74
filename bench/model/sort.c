/* Quicksort with a comparison function, insertion sort below sixteen. */
#include "work.h"

enum { COUNT = 12000 };
static uint32_t given[COUNT], sorted[COUNT];

static int compare(uint32_t left, uint32_t right)
{
	if ((left & 0xff) != (right & 0xff))
		return (left & 0xff) < (right & 0xff) ? -1 : 1;
	return left < right ? -1 : left > right;
}

static void insert(uint32_t *from, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		const uint32_t moved = from[i];
		size_t at = i;
		for (; at > 0 && compare(from[at - 1], moved) > 0; at--)
			from[at] = from[at - 1];
		from[at] = moved;
	}
}

static void sort(uint32_t *from, size_t count)
{
	while (count > 16) {
		const uint32_t pivot = from[count / 2];
		size_t low = 0, high = count - 1;
		for (;;) {
			while (compare(from[low], pivot) < 0)
				low++;
			while (compare(from[high], pivot) > 0)
				high--;
			if (low >= high)
				break;
			const uint32_t swapped = from[low];
			from[low++] = from[high];
			from[high--] = swapped;
		}
		sort(from + low, count - low);
		count = low;
	}
	insert(from, count);
}

static void prepare(uint64_t state)
{
	for (size_t i = 0; i < COUNT; i++)
		given[i] = draw(&state);
}

uint64_t work(uint64_t seed)
{
	prepare(seed);

	uint64_t sum = 0;

	memcpy(sorted, given, sizeof(given));
	sort(sorted, COUNT);
	for (size_t i = 0; i < COUNT; i += 100)
		sum = sum * 31 + sorted[i];
	return sum;
}
