#include "x86.h"

using namespace llvm;

namespace {

/* An address in memory is five operands: base, scale, index, displacement and segment. */
constexpr int ADDRESS_OPERANDS = 5;

const class Any final : public X86
{
} any;
const CoreFamily family(Triple::x86_64, "", any);

} // namespace

int addressOf(const Decoded &instruction)
{
	const int count = static_cast<int>(instruction.operands.getNumOperands());

	for (int at = 0; at + ADDRESS_OPERANDS <= count; at++)
		if (instruction.described.operands()[at].OperandType == MCOI::OPERAND_MEMORY)
			return at;
	return NONE;
}

Address addressAt(const Decoded &instruction, int at)
{
	const auto operand = [&](int i) {
		return instruction.operands.getOperand(static_cast<unsigned>(at + i));
	};

	return {bool(operand(0).getReg()), bool(operand(2).getReg()), operand(1).getImm() > 1,
		!operand(3).isImm() || operand(3).getImm() != 0};
}

bool hasThreeParts(const Address &address)
{
	return address.has_base && address.has_index && address.is_displaced;
}

bool isAddressOnly(const Decoded &instruction)
{
	return instruction.name.starts_with("LEA") && instruction.described.getNumDefs() == 1;
}

StringRef mnemonic(const Decoded &instruction)
{
	return instruction.name.take_until([](char c) { return c >= '0' && c <= '9'; });
}

void writeAt(struct operation *operation, int16_t cycles)
{
	operation->latency = static_cast<uint16_t>(cycles);
	for (uint8_t i = 0; i < operation->write_count; i++)
		operation->writes[i].cycles = cycles;
}

bool X86::isVector(StringRef reg) const
{
	return reg.contains("MM");
}

bool X86::isDivision(StringRef name) const
{
	return name.starts_with("DIV") || name.starts_with("IDIV") || name.contains("SQRT");
}

/* LLVM numbers the conditions of a conditional jump as the instruction set does. */
uint8_t X86::branchesBy(const Decoded &instruction) const
{
	if (!instruction.name.starts_with("JCC_"))
		return 0;
	switch (instruction.operands.getOperand(1).getImm()) {
	case 2:
	case 3:
	case 6:
	case 7:
		return BY_CARRY;
	case 0:
	case 1:
	case 8:
	case 9:
	case 10:
	case 11:
		return BY_SIGN;
	default:
		return BY_ORDER;
	}
}

uint8_t X86::fusesBy(const Decoded &instruction) const
{
	for (MCPhysReg reg : instruction.described.implicit_defs())
		if (StringRef(instruction.registers.getName(reg)) == "EFLAGS")
			return flagsFuseBy(instruction);
	return 0;
}

enum crossing X86::crossing(StringRef name) const
{
	if (name == "SYSCALL")
		return CROSSING_CALL;
	if (name == "SYSRET64")
		return CROSSING_CALL_RETURN;
	return name == "SWAPGS" ? CROSSING_SWAP : CROSSING_NONE;
}

uint8_t X86::flagsFuseBy(const Decoded &instruction) const
{
	const StringRef what = mnemonic(instruction);

	return what == "CMP" || what == "TEST" ? BY_ORDER | BY_CARRY | BY_SIGN : 0;
}
