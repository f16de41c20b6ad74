/* An instrumented program whose counts are known, and which writes its raw profile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t mepof_raw_profile_bound(void);
size_t mepof_raw_profile_write(void *buffer, size_t size);
void mepof_values_reset(void);

__attribute__((noinline)) int often(int x) { return x + 1; }
__attribute__((noinline)) int seldom(int x) { return x - 1; }

__attribute__((noinline)) int call(int (*function)(int), int x) { return function(x); }

char from[4096], to[4096];

__attribute__((noinline)) void copy(size_t size) { memcpy(to, from, size); }

__attribute__((no_profile_instrument_function)) static void save(const char *path, size_t size)
{
	FILE *file = fopen(path, "wb");
	void *buffer = malloc(size);
	size_t written = mepof_raw_profile_write(buffer, size);

	fwrite(buffer, 1, written, file);
	fclose(file);
}

int main(int argc, char **argv)
{
	size_t bound = mepof_raw_profile_bound();
	int x = 0;

	for (int i = 0; i < 700; i++)
		x = call(often, x);
	for (int i = 0; i < 30; i++)
		x = call(seldom, x);
	for (int i = 0; i < 50; i++)
		copy(argc > 2 ? 100 : 48);
	save(argv[1], bound);
	if (argc > 2) { /* one byte too few must write nothing; counts of zero are no values */
		mepof_values_reset();
		save(argv[2], bound);
		save(argv[3], 100);
	}
	return x == 0;
}
