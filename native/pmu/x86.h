/* What all x86-64 cores share, by LLVM's names. */
#ifndef MEPOF_PMU_X86_H
#define MEPOF_PMU_X86_H

#include "core.h"

/* For an instruction without an address. */
constexpr int NONE = -1;

struct Address {
	bool has_base, has_index, is_scaled, is_displaced;
};

/*
 * The first operand of an address. Those of string instructions and of offsets have fewer operands.
 */
int addressOf(const Decoded &instruction);

/* The address whose first operand is that one. */
Address addressAt(const Decoded &instruction, int at);

bool hasThreeParts(const Address &address);

/* Whether it is an LEA. */
bool isAddressOnly(const Decoded &instruction);

/* The name up to its sizes and operands. */
llvm::StringRef mnemonic(const Decoded &instruction);

/* Sets the latency, and when all results are ready. */
void writeAt(struct operation *operation, int16_t cycles);

class X86 : public Core
{
public:
	llvm::StringRef stackRegister() const override { return "RSP"; }
	bool isVector(llvm::StringRef reg) const override;
	bool isDivision(llvm::StringRef name) const override;
	uint8_t branchesBy(const Decoded &instruction) const override;
	uint8_t fusesBy(const Decoded &instruction) const override;
	enum crossing crossing(llvm::StringRef name) const override;

protected:
	/* The same for an instruction that sets the flags: comparisons fuse with every condition. */
	virtual uint8_t flagsFuseBy(const Decoded &instruction) const;

	~X86() = default;
};

#endif
