#include "instruction.h"

using namespace llvm;

namespace {

/* An address in memory is five operands: base, scale, index, displacement and segment. */
constexpr int ADDRESS_OPERANDS = 5;

} // namespace

int addressOf(const MCInst &instruction, const MCInstrDesc &described)
{
	const int count = static_cast<int>(instruction.getNumOperands());

	for (int at = 0; at + ADDRESS_OPERANDS <= count; at++)
		if (described.operands()[at].OperandType == MCOI::OPERAND_MEMORY)
			return at;
	return NONE;
}

Address addressAt(const MCInst &instruction, int at)
{
	const auto operand = [&](int i) { return instruction.getOperand(static_cast<unsigned>(at + i)); };

	return {bool(operand(0).getReg()), bool(operand(2).getReg()), operand(1).getImm() > 1,
		!operand(3).isImm() || operand(3).getImm() != 0};
}

bool hasThreeParts(const Address &address)
{
	return address.has_base && address.has_index && address.is_displaced;
}

bool isAddressOnly(StringRef name, const MCInstrDesc &described)
{
	return name.starts_with("LEA") && described.getNumDefs() == 1;
}

bool isDivision(StringRef name)
{
	return name.starts_with("DIV") || name.starts_with("IDIV") || name.contains("SQRT");
}

void writeAt(struct operation *operation, int16_t cycles)
{
	operation->latency = static_cast<uint16_t>(cycles);
	for (uint8_t i = 0; i < operation->write_count; i++)
		operation->writes[i].cycles = cycles;
}
