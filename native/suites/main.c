/* main() of the programs that have a table of cases. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

static int run_case(const struct suite_case *is, unsigned long scale)
{
	const unsigned long operations = is->operations / scale > 0 ? is->operations / scale : 1;

	/* A scaled-down case is a test, not a measurement. */
	if (scale == 1)
		settle();
	case_begin(is->name, operations);
	return case_end(is->run(is, operations));
}

static int usage(void)
{
	fprintf(stderr, "usage: %s list\n       %s CASE [--scale N]\n", suite_name, suite_name);
	return 2;
}

int main(int argc, char **argv)
{
	unsigned long scale = 1;

	if (argc == 2 && strcmp(argv[1], "list") == 0) {
		for (size_t i = 0; i < suite_case_count; i++)
			printf("case=%s operations=%lu\n", suite_cases[i].name, suite_cases[i].operations);
		return 0;
	}
	if (argc == 4 && strcmp(argv[2], "--scale") == 0) {
		char *end;
		scale = strtoul(argv[3], &end, 10);
		if (argv[3][0] < '0' || argv[3][0] > '9' || *end != '\0' || scale == 0)
			return usage();
	} else if (argc != 2) {
		return usage();
	}
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < suite_case_count; i++)
		if (strcmp(suite_cases[i].name, argv[1]) == 0)
			return run_case(&suite_cases[i], scale);
	return usage();
}
