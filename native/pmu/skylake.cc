#include "skylake.h"

#include "instruction.h"

#include <algorithm>

using namespace llvm;

namespace {

/* Fog, Instruction tables: of a division of 32 bits. LLVM takes all for those of 64. */
constexpr uint8_t DIVISION_SLOTS = 10, DIVISION_UNIT = 6;
constexpr int16_t DIVISION_LATENCY = 26, THREE_PARTS_LATENCY = 3;

bool isOneOf(StringRef name, std::initializer_list<StringRef> names)
{
	return std::find(names.begin(), names.end(), name) != names.end();
}

/* Slots of what moves the stack pointer, which takes none of its own (a stack engine); or 0. */
uint8_t stackSlots(StringRef name)
{
	if (isOneOf(name, {"PUSH64r", "PUSH64rmr", "PUSH64i8", "PUSH64i32", "POP64r", "POP64rmr",
			   "RET64"}))
		return 1;
	if (isOneOf(name, {"PUSH64rmm", "POP64rmm", "CALL64pcrel32", "CALL64r"}))
		return 2;
	return name == "CALL64m" ? 3 : 0;
}

/*
 * LLVM counts what the execution units get; a load and what is done with it, or a store's address
 * and value, are dispatched as one. With an index, a load is so only for what changes a register
 * by two operands (P. Cordes, stackoverflow.com/questions/26046634).
 */
bool isMicroFused(const MCInst &instruction, const MCInstrDesc &described)
{
	const int at = addressOf(instruction, described);

	if (at == NONE)
		return false;
	const bool changes_register = described.getNumDefs() == 1 &&
				      described.getOperandConstraint(1, MCOI::TIED_TO) == 0 &&
				      described.implicit_uses().empty();
	return described.mayStore() || changes_register || !addressAt(instruction, at).has_index;
}

/* Without the units for sums, which any operation may take. */
void dropSums(const MCSchedModel &model, struct operation *operation)
{
	struct use *const end = std::remove_if(
		operation->uses, operation->uses + operation->use_count, [&](struct use use) {
			return StringRef(model.getProcResource(use.kind)->Name).contains("Port015");
		});
	operation->use_count = static_cast<uint8_t>(end - operation->uses);
}

} // namespace

bool isSkylake(const MCSubtargetInfo &core)
{
	return core.getCPU().starts_with("skylake");
}

/* Intel's manual, 3.4.2.2; llvm/lib/Target/X86/MCTargetDesc/X86BaseInfo.h has the same. */
uint8_t skylakeFusesBy(StringRef name, const MCInst &instruction, const MCInstrDesc &described)
{
	const MCOperand &last = instruction.getOperand(instruction.getNumOperands() - 1);
	const bool has_address = addressOf(instruction, described) != NONE;

	if (described.mayStore() || (has_address && !last.isReg()))
		return 0;
	if (isOneOf(name, {"TEST", "AND"}))
		return BY_ORDER | BY_CARRY | BY_SIGN;
	if (isOneOf(name, {"CMP", "ADD", "SUB"}))
		return BY_ORDER | BY_CARRY;
	return isOneOf(name, {"INC", "DEC"}) ? BY_ORDER : 0;
}

/* Fog, Microarchitecture: moves are almost always eliminated; not those of a register to itself. */
bool skylakeRenames(const MCInst &instruction, StringRef name)
{
	if (name.ends_with("_REV"))
		name = name.drop_back(4);
	return isOneOf(name, {"MOV32rr", "MOV64rr", "MOVZX32rr8", "MOVAPSrr", "MOVAPDrr", "MOVUPSrr",
			      "MOVUPDrr", "MOVDQArr", "MOVDQUrr"}) &&
	       instruction.getOperand(0).getReg() != instruction.getOperand(1).getReg();
}

void mendSkylake(const MCInst &instruction, const MCInstrDesc &described, StringRef name,
		 const MCSubtargetInfo &core, struct operation *operation)
{
	if (const uint8_t slots = stackSlots(name)) {
		operation->slots = slots;
		dropSums(core.getSchedModel(), operation);
	} else if (operation->slots > 1 && isMicroFused(instruction, described)) {
		operation->slots--;
	}
	if (isAddressOnly(name, described) && hasThreeParts(addressAt(instruction, 1)))
		writeAt(operation, THREE_PARTS_LATENCY);
	if (name.starts_with("DIV32") || name.starts_with("IDIV32")) {
		operation->slots = DIVISION_SLOTS;
		for (uint8_t i = 0; i < operation->use_count; i++)
			operation->uses[i].cycles = std::min(operation->uses[i].cycles, DIVISION_UNIT);
		const int load = described.mayLoad() ? operation->load_latency : 0;
		writeAt(operation, static_cast<int16_t>(DIVISION_LATENCY + load));
	}
}
