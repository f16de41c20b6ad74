// SPDX-License-Identifier: GPL-2.0
/*
 * Instrumented code keeps the target of an indirect call in __gcov_indirect_call, which the callee
 * reads. The compiler makes it thread-local where the machine has thread-local storage, at an
 * address that belongs to user space while the kernel runs. The kernel has no other thread-local
 * variable of C's, so the compiler is told that the machine has none.
 */
#include "gcc-common.h"

__visible int plugin_is_GPL_compatible;

__visible int plugin_init(struct plugin_name_args *info, struct plugin_gcc_version *version)
{
	if (!plugin_default_version_check(version, &gcc_version)) {
		error(G_("incompatible gcc/plugin versions"));
		return 1;
	}
	targetm.have_tls = false;
	return 0;
}
