/* A program with what makes profiles hard: inlining through several levels, loops that unroll,
 * switches, recursion, tail calls and indirect calls. It is compiled and walked, never run. */

struct item {
	int key;
	int value;
	struct item *next;
};

static inline int clamp(int value, int low, int high)
{
	return value < low ? low : value > high ? high : value;
}

static inline __attribute__((always_inline)) int scale(int value)
{
	int result = clamp(value * 3, -100, 100);
	if (result & 1)
		result ^= value;
	return result;
}

__attribute__((noinline)) int sum(const int *values, int count)
{
	int total = 0;
	for (int i = 0; i < count; i++)
		total += scale(values[i]);
	return total;
}

__attribute__((noinline)) static struct item *find(struct item *item, int key)
{
	while (item && item->key != key)
		item = item->next;
	return item;
}

__attribute__((noinline)) int classify(int kind, int value)
{
	switch (kind) {
	case 0: return value + 1;
	case 1: return value * 7;
	case 2: return sum(&value, 1);
	case 3: return value - kind;
	case 4: return clamp(value, 2, 90);
	case 5: return scale(value) ? kind : value;
	default: return -1;
	}
}

__attribute__((noinline)) int depth(struct item *item)
{
	return item ? 1 + depth(item->next) : 0;
}

typedef int (*handler)(int, int);
handler handlers[4];

__attribute__((noinline)) int dispatch(int which, int value)
{
	if (which < 0 || !handlers[which & 3])
		return classify(which, value); /* a tail call */
	return handlers[which & 3](which, value) + scale(value);
}

int work(struct item *items, const int *values, int count)
{
	int result = sum(values, count);
	for (int i = 0; i < count; i++) {
		struct item *item = find(items, values[i]);
		if (__builtin_expect(!item, 0))
			continue;
		result += dispatch(item->value & 7, scale(values[i]));
		if (item->next && result > 100)
			result -= depth(item->next);
	}
	return result;
}

void _start(void)
{
	static struct item items[3];
	static int values[8];
	for (;;)
		values[0] = work(items, values, 8);
}
