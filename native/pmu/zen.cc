/*
 * AMD's Zen 4 where it differs from LLVM's model, as bench/core_loops.py measured it on an AMD EPYC
 * of family 25, model 17.
 */
#include "x86.h"

#include <algorithm>

using namespace llvm;

namespace {

const class Zen final : public X86
{
public:
	void correct(const Decoded &instruction, struct operation *operation) const override;

protected:
	uint8_t flagsFuseBy(const Decoded &instruction) const override;
} zen;
const CoreFamily family(Triple::x86_64, "znver", zen);

/* Whether a load gets a store's value as a copy of a register does. */
bool isForwardedByRenaming(const Decoded &instruction)
{
	const StringRef name = instruction.name;

	return name == "MOV32rm" || name == "MOV64rm" || name == "POP64r" || name == "LEAVE64" ||
	       instruction.described.mayStore();
}

/*
 * Two parts are added in one cycle, scaled or not. Three take another, for which an index is needed
 * later.
 */
void correctLea(const Decoded &instruction, struct operation *operation)
{
	const bool takes_two = hasThreeParts(addressAt(instruction, 1));

	operation->slots = takes_two ? 2 : 1;
	writeAt(operation, takes_two ? 2 : 1);
	for (uint8_t i = 0; takes_two && i < operation->read_count; i++)
		operation->reads[i].cycles = operation->reads[i].number == 2;
}

/*
 * Four cycles, and one more for a scaled index, for an address of three parts, and for a load that
 * extends the sign or keeps a part of the register. LLVM has five for plain loads.
 */
void correctLoad(const Decoded &instruction, struct operation *operation)
{
	const MCInstrDesc &described = instruction.described;
	const StringRef name = instruction.name;
	const int at = addressOf(instruction);
	const bool is_plain = operation->latency == operation->load_latency + 1 &&
			      described.getNumDefs() == 1 && described.implicit_defs().empty();

	if (is_plain && !name.starts_with("MOVSX") && name != "MOV8rm" && name != "MOV16rm")
		writeAt(operation, static_cast<int16_t>(operation->load_latency));
	if (at == NONE)
		return;
	const Address address = addressAt(instruction, at);
	if (!address.is_scaled && !hasThreeParts(address))
		return;
	for (uint8_t i = 0; i < operation->read_count; i++)
		operation->reads[i].cycles += operation->reads[i].cycles >= operation->load_latency;
	for (uint8_t i = 0; i < operation->write_count; i++)
		operation->writes[i].cycles += operation->writes[i].cycles >= operation->load_latency;
	operation->load_latency++;
	operation->latency++;
}

uint8_t Zen::flagsFuseBy(const Decoded &instruction) const
{
	const StringRef name = mnemonic(instruction);

	if (instruction.described.mayLoad() || instruction.described.mayStore())
		return 0;
	/* These leave the carry unchanged. */
	if (name == "INC" || name == "DEC")
		return BY_ORDER | BY_SIGN;
	for (const char *one : {"CMP", "TEST", "ADD", "SUB", "AND", "OR", "XOR"})
		if (name == one)
			return BY_ORDER | BY_CARRY | BY_SIGN;
	return 0;
}

void Zen::correct(const Decoded &instruction, struct operation *operation) const
{
	const MCInstrDesc &described = instruction.described;
	const StringRef name = instruction.name;

	if (name.starts_with("NOOP"))
		operation->slots = 0;
	/*
	 * All units except the dividers accept an operation in each cycle; those that store
	 * vectors, in every other.
	 */
	if (!isDivision(name) && !operation->is_vector) {
		for (uint8_t i = 0; i < operation->use_count; i++)
			operation->uses[i].cycles = 1;
		operation->takes_long = false;
	}
	if (isAddressOnly(instruction))
		correctLea(instruction, operation);
	if (described.mayLoad() && operation->load_latency > 0) {
		correctLoad(instruction, operation);
		operation->forwards_late |= !isForwardedByRenaming(instruction);
	}
	/* Operations that change memory are two, of which LLVM counts one. */
	if (described.mayLoad() && described.mayStore() && addressOf(instruction) == 0)
		operation->slots = std::max<uint8_t>(operation->slots, 2);
	/* From general to vector registers and back. */
	if (name.starts_with("MOVDI2PDI") || name.starts_with("MOV64toPQI"))
		writeAt(operation, 4);
	else if (name.starts_with("MOVPDI2DI") || name.starts_with("MOVPQIto64") ||
		 name.starts_with("PMOVMSKB") || name.starts_with("MOVMSK"))
		writeAt(operation, 3);
}

} // namespace
