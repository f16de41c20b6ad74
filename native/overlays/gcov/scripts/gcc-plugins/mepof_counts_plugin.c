// SPDX-License-Identifier: GPL-2.0
/*
 * Instrumented code keeps the target of an indirect call in __gcov_indirect_call, which the callee
 * reads. The compiler makes it thread-local where the machine has thread-local storage, at an
 * address that belongs to user space while the kernel runs. The kernel has no other thread-local
 * variable of C's, so the compiler is told that the machine has none.
 */
/* The compiler's own headers: gcc-common.h of a kernel may not know those of a later compiler. */
#include "gcc-plugin.h"
#include "plugin-version.h"
#include "tree.h"
#include "memmodel.h"
#include "tm_p.h"
#include "target.h"
#include "diagnostic-core.h"
#include "intl.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int plugin_is_GPL_compatible;

EXPORTED int plugin_init(struct plugin_name_args *info, struct plugin_gcc_version *version)
{
	if (!plugin_default_version_check(version, &gcc_version)) {
		error(G_("incompatible gcc/plugin versions"));
		return 1;
	}
	targetm.have_tls = false;
	return 0;
}
