/* The loads of the unixbench suite. */
#ifndef MEPOF_SUITES_UNIXBENCH_H
#define MEPOF_SUITES_UNIXBENCH_H

#include <stdbool.h>

#include "../case.h"

/*
 * One copy of a load: `prepare` runs outside of the measured interval, `work` inside, for a number
 * of operations, and `finish` checks and cleans up. Copies run in processes and directories of
 * their own. False after fault().
 */
struct load {
	bool (*prepare)(const struct suite_case *is);
	bool (*work)(const struct suite_case *is, unsigned long operations);
	bool (*finish)(const struct suite_case *is, unsigned long operations);
};

extern const struct load load_syscall;
extern const struct load load_pipe;
extern const struct load load_context;
extern const struct load load_spawn;
extern const struct load load_execl;
extern const struct load load_copy;
extern const struct load load_shell;
extern const struct load load_dhry;
extern const struct load load_whet;

#endif
