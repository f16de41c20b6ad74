/*
 * What pmu.so uses of QEMU's plugin interface besides tcg-plugin/qemu_plugin_api.h: sizes and physical
 * addresses of data accesses. Names and types are QEMU's ("QEMU TCG Plugins" in its developer manual).
 */
#ifndef MEPOF_QEMU_MEMORY_API_H
#define MEPOF_QEMU_MEMORY_API_H

#include "../tcg-plugin/qemu_plugin_api.h"

struct qemu_plugin_hwaddr;

/* The address of the instruction in the host's memory, or NULL. */
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);

/* Base-2 logarithm of the bytes that are accessed. */
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
/* NULL in user-mode emulation; valid within the callback only. */
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *haddr);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *haddr);

#endif
