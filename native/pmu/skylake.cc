/*
 * Intel's Skylake where it differs from LLVM's model: by Agner Fog's Instruction tables and his The
 * microarchitecture of Intel, AMD and VIA CPUs, by what uops.info measured, and by Intel's
 * optimisation manual (Intel 64 and IA-32 Architectures Optimization Reference Manual, order number
 * 248966).
 */
#include "x86.h"

#include <algorithm>

#include <llvm/ADT/STLExtras.h>

using namespace llvm;

namespace {

const class Skylake final : public X86
{
public:
	bool isRenamed(const Decoded &instruction, bool by_llvm) const override;
	void correct(const Decoded &instruction, struct operation *operation) const override;

protected:
	uint8_t flagsFuseBy(const Decoded &instruction) const override;
} skylake;
const CoreFamily family(Triple::x86_64, "skylake", skylake);

constexpr int16_t SLOW_ADDRESS_LATENCY = 3;

/* Of an instruction that addresses a bit in memory by a register. */
constexpr uint8_t BIT_SLOTS = 10;

/* Fog, Instruction tables, the lowest values. LLVM's classes of divisions do not match. */
struct Division {
	StringRef name;
	uint8_t slots, unit_cycles;
	int16_t latency;
};
constexpr Division DIVISIONS[] = {
	{"DIV8", 10, 6, 23},  {"DIV16", 10, 6, 23},  {"DIV32", 10, 6, 26},  {"DIV64", 36, 21, 35},
	{"IDIV8", 10, 6, 24}, {"IDIV16", 10, 6, 24}, {"IDIV32", 10, 6, 26}, {"IDIV64", 57, 24, 42},
};

bool isOneOf(StringRef name, std::initializer_list<StringRef> names)
{
	return std::find(names.begin(), names.end(), name) != names.end();
}

/*
 * Slots of an instruction that moves the stack pointer, which takes no slot (a stack engine); or 0.
 */
uint8_t stackSlots(StringRef name)
{
	if (isOneOf(name, {"PUSH64r", "PUSH64rmr", "PUSH64i8", "PUSH64i32", "POP64r", "POP64rmr",
			   "RET64"}))
		return 1;
	if (isOneOf(name, {"PUSH64rmm", "POP64rmm", "CALL64pcrel32", "CALL64r"}))
		return 2;
	return name == "CALL64m" ? 3 : 0;
}

bool hasIndex(const Decoded &instruction, int address)
{
	return addressAt(instruction, address).has_index;
}

/* Loads that are never dispatched together with the operation on them (uops.info). */
bool isNeverFused(const Decoded &instruction, int address)
{
	constexpr int OPERANDS = 5; /* of an address */
	const MCInst &operands = instruction.operands;
	const StringRef name = instruction.name;
	const bool has_constant =
		static_cast<int>(operands.getNumOperands()) > address + OPERANDS &&
		operands.getOperand(operands.getNumOperands() - 1).isImm();

	for (const char *one : {"BT", "MOVBE", "SHLX", "SHRX", "SARX", "COMIS", "UCOMIS", "PSHUFB",
				"AES", "PSLL", "PSRL", "PSRA"})
		if (name.starts_with(one))
			return true;
	/* The condition of a CMOV is an operand too. */
	return has_constant && !name.starts_with("CMP") && !name.starts_with("TEST") &&
	       !name.starts_with("IMUL") && !name.starts_with("CMOV");
}

/* Whether it changes a register by another operand without needing flags. */
bool isOfTwoOperands(const Decoded &instruction)
{
	const MCInstrDesc &described = instruction.described;
	const auto isOfControl = [&](MCPhysReg reg) {
		return StringRef(instruction.registers.getName(reg)) == "MXCSR";
	};

	return instruction.operands.getNumOperands() == 7 && described.getNumDefs() == 1 &&
	       described.getOperandConstraint(1, MCOI::TIED_TO) == 0 &&
	       all_of(described.implicit_uses(), isOfControl);
}

/*
 * How many slots fewer than in LLVM, which counts execution micro-operations: a load and the
 * operation on it are dispatched as one, and so are a store's address and its value (LLVM has this
 * for general registers). With an index, a load fuses only with an operation that changes a
 * register by two operands (P. Cordes, stackoverflow.com/questions/26046634).
 */
unsigned microFused(const Decoded &instruction)
{
	const MCInstrDesc &described = instruction.described;
	const StringRef name = instruction.name;
	const int at = addressOf(instruction);

	if (at == NONE || name.starts_with("XCHG") || name.starts_with("MOVNTI"))
		return 0;
	if (described.mayLoad() && described.mayStore()) {
		if (name.starts_with("ADC") || name.starts_with("SBB"))
			return hasIndex(instruction, at) ? 1 : 2;
		for (const char *one : {"ADD", "SUB", "AND", "OR", "XOR", "NEG"})
			if (name.starts_with(one))
				return hasIndex(instruction, at) ? 0 : 1;
		return !name.starts_with("INC") && !name.starts_with("DEC") && !name.starts_with("NOT");
	}
	if (described.mayStore())
		return 1;
	return !isNeverFused(instruction, at) &&
	       (!hasIndex(instruction, at) || isOfTwoOperands(instruction));
}

/* An address of three parts, with a base that requires a displacement, or relative to RIP. */
bool isSlowAddress(const Decoded &instruction)
{
	const Address address = addressAt(instruction, 1);
	const MCRegister base = instruction.operands.getOperand(1).getReg();
	const StringRef name = base ? instruction.registers.getName(base) : "";

	return hasThreeParts(address) || name == "RIP" ||
	       (address.has_index && isOneOf(name, {"RBP", "EBP", "R13", "R13D"}));
}

/* On one of the two units that execute addresses of two parts. */
void correctSlowAddress(const MCSchedModel &model, struct operation *operation)
{
	writeAt(operation, SLOW_ADDRESS_LATENCY);
	for (uint8_t i = 0; i < operation->use_count; i++)
		for (unsigned kind = 1; kind < model.getNumProcResourceKinds(); kind++)
			if (StringRef(model.getProcResource(operation->uses[i].kind)->Name) == "SKLPort15" &&
			    StringRef(model.getProcResource(kind)->Name) == "SKLPort1")
				operation->uses[i].kind = static_cast<uint8_t>(kind);
}

void correctDivision(const Division &division, bool loads, struct operation *operation)
{
	operation->slots = division.slots + (loads && division.unit_cycles == 6);
	for (uint8_t i = 0; i < operation->use_count; i++)
		operation->uses[i].cycles = std::min(operation->uses[i].cycles, division.unit_cycles);
	writeAt(operation,
		static_cast<int16_t>(division.latency + (loads ? operation->load_latency : 0)));
}

/* Drops the units for sums, and the group of all units. */
void dropSums(const MCSchedModel &model, struct operation *operation)
{
	struct use *const end = std::remove_if(
		operation->uses, operation->uses + operation->use_count, [&](struct use use) {
			const StringRef name = model.getProcResource(use.kind)->Name;
			return name.contains("Port015") || name.contains("PortAny");
		});
	operation->use_count = static_cast<uint8_t>(end - operation->uses);
}

/* Intel's manual, 3.4.2.2; llvm/lib/Target/X86/MCTargetDesc/X86BaseInfo.h has the same. */
uint8_t Skylake::flagsFuseBy(const Decoded &instruction) const
{
	const MCInst &operands = instruction.operands;
	const StringRef name = mnemonic(instruction);

	if (instruction.described.mayStore() ||
	    (addressOf(instruction) != NONE &&
	     operands.getOperand(operands.getNumOperands() - 1).isImm()))
		return 0;
	if (isOneOf(name, {"TEST", "AND"}))
		return BY_ORDER | BY_CARRY | BY_SIGN;
	if (isOneOf(name, {"CMP", "ADD", "SUB"}))
		return BY_ORDER | BY_CARRY;
	return isOneOf(name, {"INC", "DEC"}) ? BY_ORDER : 0;
}

/*
 * Fog, Microarchitecture: moves are almost always eliminated; not those of a register to itself,
 * nor of the second byte of one.
 */
bool Skylake::isRenamed(const Decoded &instruction, bool by_llvm) const
{
	const MCInst &operands = instruction.operands;
	StringRef name = instruction.name;

	(void)by_llvm;
	name.consume_back("_REV");
	if (name.starts_with("VMOV"))
		name = name.drop_front(1);
	name.consume_back("Yrr") || name.consume_back("rr");
	if (isOneOf(name, {"MOVZX32rr8", "MOVZX64rr8"})) {
		const StringRef byte = instruction.registers.getName(operands.getOperand(1).getReg());
		if (isOneOf(byte, {"AH", "BH", "CH", "DH"}))
			return false;
	} else if (!isOneOf(name, {"MOV32", "MOV64", "MOVAPS", "MOVAPD", "MOVUPS", "MOVUPD", "MOVDQA",
				   "MOVDQU"})) {
		return false;
	}
	return !instruction.registers.regsOverlap(operands.getOperand(0).getReg(),
						    operands.getOperand(1).getReg());
}

void Skylake::correct(const Decoded &instruction, struct operation *operation) const
{
	const MCSchedModel &model = instruction.core.getSchedModel();
	const StringRef name = instruction.name;

	if (const uint8_t slots = stackSlots(name)) {
		operation->slots = slots;
		dropSums(model, operation);
	} else if (name.starts_with("BT") && name.ends_with("mr")) {
		operation->slots = BIT_SLOTS;
	} else if (operation->slots > 1) {
		const unsigned fewer = microFused(instruction);
		operation->slots = static_cast<uint8_t>(std::max<unsigned>(operation->slots - fewer, 1));
	}
	if (isAddressOnly(instruction) && isSlowAddress(instruction))
		correctSlowAddress(model, operation);
	for (const Division &division : DIVISIONS)
		if (name.drop_back(1) == division.name)
			correctDivision(division, instruction.described.mayLoad(), operation);
}

} // namespace
