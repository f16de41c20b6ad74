/* More of a branch than decode.h tells: whether it calls, returns, and knows its target. */
#ifndef MEPOF_PMU_TRANSFER_H
#define MEPOF_PMU_TRANSFER_H

#include "../tcg-plugin/decode.h"
#include "model.h"

/* Of an instruction of that kind; it ends at `next`. */
struct branch branch_of(const struct instruction_set *set, enum insn_kind kind,
			const uint8_t *bytes, size_t size, uint64_t next);

/*
 * Whether the instruction sets the address space of user code, and from which general register,
 * by its name for QEMU's debugger; NULL for any other.
 */
const char *space_register(const struct instruction_set *set, const uint8_t *bytes, size_t size);

#endif
