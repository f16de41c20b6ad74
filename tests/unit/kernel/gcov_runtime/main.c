/* Does the work, and writes the archive of counts to the files that it is given. */
#include <stdio.h>
#include <stdlib.h>

unsigned int work(void);

#ifdef RUNTIME
size_t mepof_count_files_size(void);
size_t mepof_count_files_write(char *to, size_t capacity);
void mepof_counters_reset(void);

static void save(const char *path, size_t capacity)
{
	FILE *file = fopen(path, "wb");
	char *buffer = malloc(capacity);

	fwrite(buffer, 1, mepof_count_files_write(buffer, capacity), file);
	fclose(file);
}
#endif

int main(int argc, char **argv)
{
	unsigned int sum = work();

#ifdef RUNTIME
	save(argv[1], mepof_count_files_size());
	if (argc > 2) { /* one byte too few must write nothing */
		mepof_counters_reset();
		save(argv[2], mepof_count_files_size());
		save(argv[3], 100);
	}
#endif
	return sum == 0;
}
