/*
 * Which vCPU executes, where several take turns in one thread, as with -icount. There, QEMU 10
 * translates a block once for all of them, and passes the index of the vCPU that translated it to
 * callbacks and inline code; in QEMU 10.0, inline code of any other vCPU than the first corrupts
 * memory. So callbacks do all the work, and the vCPUs are told apart by what they execute: Linux
 * keeps the address of a CPU's own data in a register.
 */
#ifndef MEPOF_TURNS_H
#define MEPOF_TURNS_H

#include "decode.h"

enum { MAX_TURNS = 64 };

/*
 * Call at installation, with the number of vCPUs, at most MAX_TURNS; `plugin` is the name for error
 * messages.
 */
void turns_open(const char *plugin, const struct instruction_set *set, unsigned int vcpus);

/*
 * The vCPU that executes, numbered in the order of the first calls on each. Call at the beginning of
 * every block, with QEMU_PLUGIN_CB_R_REGS: a turn ends only between blocks. Linux must have set up
 * its CPUs: before, they look the same.
 */
unsigned int turns_vcpu(void);

#endif
