/* The guest's registers, by their names in QEMU's gdbstub. */
#ifndef MEPOF_REGISTERS_H
#define MEPOF_REGISTERS_H

#include <stdint.h>

struct qemu_plugin_register;

/* Call these in the thread of a vCPU; handles serve every vCPU. */

/* NULL: the guest has no such register. */
struct qemu_plugin_register *register_named(const char *name);

/*
 * Its low 64 bits on the vCPU that executes, or 0. The callback needs QEMU_PLUGIN_CB_R_REGS.
 */
uint64_t register_value(struct qemu_plugin_register *handle);

#endif
