/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MEPOF_MODULES_H
#define _MEPOF_MODULES_H

#include <linux/module.h>

#ifdef CONFIG_MODULES
/* A module whose sections have their final addresses; it may still fail to load. */
void mepof_module_found(const struct module *module, unsigned int sections,
			const Elf_Shdr *headers, const char *names);
/* Set all counts to zero, and forget those of modules that were unloaded. */
void mepof_modules_reset(void);
#else
static inline void mepof_modules_reset(void)
{
}
#endif

#endif /* _MEPOF_MODULES_H */
