/*
 * What LLVM's scheduling models leave out of a core or get wrong. Each family of cores is one file,
 * which derives from Core and registers itself with a CoreFamily; x86.h has what all x86-64 cores
 * share. A core without a family is what LLVM says.
 */
#ifndef MEPOF_PMU_CORE_H
#define MEPOF_PMU_CORE_H

#include "operation.h"

#include <llvm/ADT/StringRef.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstrDesc.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/TargetParser/Triple.h>

/* An instruction as LLVM disassembles and describes it, on a core. */
struct Decoded {
	const llvm::MCInst &operands;
	const llvm::MCInstrDesc &described;
	llvm::StringRef name;
	const llvm::MCSubtargetInfo &core;
	const llvm::MCRegisterInfo &registers;
};

class Core
{
public:
	/* LLVM's name of the register that a stack engine keeps; empty without one. */
	virtual llvm::StringRef stackRegister() const { return ""; }

	virtual bool isVector(llvm::StringRef reg) const
	{
		(void)reg;
		return false;
	}

	/* Or a square root. */
	virtual bool isDivision(llvm::StringRef name) const
	{
		(void)name;
		return false;
	}

	/* Groups of conditions that the instruction branches by; 0 if it does not branch by flags. */
	virtual uint8_t branchesBy(const Decoded &instruction) const
	{
		(void)instruction;
		return 0;
	}

	/* Groups of conditions of the branches that the instruction before them fuses with. */
	virtual uint8_t fusesBy(const Decoded &instruction) const
	{
		(void)instruction;
		return 0;
	}

	/* Of instructions other than returns from interrupts. */
	virtual enum crossing crossing(llvm::StringRef name) const
	{
		(void)name;
		return CROSSING_NONE;
	}

	/* Whether renaming makes the copy, given what LLVM says. */
	virtual bool isRenamed(const Decoded &instruction, bool by_llvm) const
	{
		(void)instruction;
		return by_llvm;
	}

	/* Corrects what LLVM's model made of the instruction. */
	virtual void correct(const Decoded &instruction, struct operation *operation) const
	{
		(void)instruction;
		(void)operation;
	}

protected:
	~Core() = default;
};

/* Registers a core for the CPU names of LLVM with a prefix. The longest prefix wins. */
class CoreFamily
{
public:
	CoreFamily(llvm::Triple::ArchType arch, llvm::StringRef prefix, const Core &core);

	static const Core &find(const llvm::MCSubtargetInfo &core);

private:
	llvm::Triple::ArchType arch;
	llvm::StringRef prefix;
	const Core &core;
	const CoreFamily *next;
};

#endif
