/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The raw profile of one module.
 *
 * A module has the sections that vmlinux has. Only the nodes of its value profiles are not its
 * own: value_profile.c takes them from vmlinux's pool, so that instrumented code needs no search
 * for the module that it is in, and lists outlive a module that is unloaded. What the compiler
 * reserves in the module's __llvm_prf_vnds stays unused.
 */
#ifndef _MEPOF_MODULE_PROFILE_H
#define _MEPOF_MODULE_PROFILE_H

#include <linux/types.h>

struct function_data;

/* Without a bitmap, both of its bounds are NULL. */
struct module_sections {
	struct function_data *data, *data_end;
	char *counters, *counters_end;
	char *bitmap, *bitmap_end;
	char *names, *names_end;
};

/* As of mepof_raw_profile_bound() and mepof_raw_profile_write(). One call at a time. */
size_t module_profile_bound(const struct module_sections *sections);
size_t module_profile_write(const struct module_sections *sections, void *buffer, size_t size);

void module_profile_reset(const struct module_sections *sections);

/*
 * Set the counters to those of an earlier raw profile. Returns whether it is one of the same
 * functions; otherwise nothing changes.
 */
bool module_profile_take_up(const struct module_sections *sections, const void *raw, size_t size);

#endif /* _MEPOF_MODULE_PROFILE_H */
