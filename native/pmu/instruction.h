/* What an instruction of x86-64 has, as LLVM describes it, for those who mend LLVM's models. */
#ifndef MEPOF_PMU_INSTRUCTION_H
#define MEPOF_PMU_INSTRUCTION_H

#include "operation.h"

#include <llvm/ADT/StringRef.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstrDesc.h>
#include <llvm/MC/MCSubtargetInfo.h>

/* For an instruction without an address. */
constexpr int NONE = -1;

struct Address {
	bool has_base, has_index, is_scaled, is_displaced;
};

/* The first operand of an address; those of string instructions and of offsets are shorter. */
int addressOf(const llvm::MCInst &instruction, const llvm::MCInstrDesc &described);

/* Of the operand from that one on. */
Address addressAt(const llvm::MCInst &instruction, int at);

bool hasThreeParts(const Address &address);

/* Whether it is an LEA. */
bool isAddressOnly(llvm::StringRef name, const llvm::MCInstrDesc &described);

/* Or a square root. */
bool isDivision(llvm::StringRef name);

/* All that it writes is there after so many cycles. */
void writeAt(struct operation *operation, int16_t cycles);

#endif
