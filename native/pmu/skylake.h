/*
 * What Intel's Skylake does otherwise than LLVM's model of it says: by Agner Fog's Instruction
 * tables and his The microarchitecture of Intel, AMD and VIA CPUs, by what uops.info measured, and
 * by Intel's optimisation manual (Intel 64 and IA-32 Architectures Optimization Reference Manual,
 * order number 248966).
 */
#ifndef MEPOF_PMU_SKYLAKE_H
#define MEPOF_PMU_SKYLAKE_H

#include "operation.h"

#include <llvm/ADT/StringRef.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstrDesc.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>

bool isSkylake(const llvm::MCSubtargetInfo &core);

/* By which conditions a jump is one with the instruction of that name before it. */
uint8_t skylakeFusesBy(llvm::StringRef name, const llvm::MCInst &instruction,
		       const llvm::MCInstrDesc &described);

/* Whether a copy between registers is made by renaming. */
bool skylakeRenames(const llvm::MCInst &instruction, llvm::StringRef name,
		    const llvm::MCRegisterInfo &registers);

/* An instruction that LLVM's model has described. */
void mendSkylake(const llvm::MCInst &instruction, const llvm::MCInstrDesc &described,
		 llvm::StringRef name, const llvm::MCSubtargetInfo &core,
		 const llvm::MCRegisterInfo &registers, struct operation *operation);

#endif
