/*
 * What processors of AMD's Zen 4 do otherwise than LLVM's model of them says, as measured by
 * bench/core_loops.py on an AMD EPYC of family 25, model 17.
 */
#ifndef MEPOF_PMU_ZEN_H
#define MEPOF_PMU_ZEN_H

#include "operation.h"

#include <llvm/ADT/StringRef.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstrDesc.h>
#include <llvm/MC/MCSubtargetInfo.h>

bool isZen(const llvm::MCSubtargetInfo &core);

/* By which conditions a jump is one with the instruction of that name before it. */
uint8_t zenFusesBy(llvm::StringRef name, const llvm::MCInstrDesc &described);

/* An instruction that LLVM's model has described. */
void mendZen(const llvm::MCInst &instruction, const llvm::MCInstrDesc &described,
	     llvm::StringRef name, struct operation *operation);

#endif
