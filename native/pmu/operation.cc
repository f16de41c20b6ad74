/* LLVM's interface: llvm/MC/MCSchedule.h; llvm/lib/MCA/InstrBuilder.cpp reads the same tables. */
#include "operation.h"

#include <algorithm>
#include <memory>
#include <string>

#include <llvm/ADT/APInt.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Triple.h>

using namespace llvm;

namespace {

struct Tables {
	MCTargetOptions options;
	std::unique_ptr<MCRegisterInfo> registers;
	std::unique_ptr<MCAsmInfo> assembly;
	std::unique_ptr<MCInstrInfo> instructions;
	std::unique_ptr<MCSubtargetInfo> core;
	std::unique_ptr<MCContext> context;
	std::unique_ptr<MCDisassembler> disassembler;
	std::unique_ptr<MCInstrAnalysis> analysis;
	MCRegister stack, flags; /* of x86-64 */
};
Tables *tables;

const MCSchedClassDesc *classOf(const MCInst &instruction, const MCInstrDesc &described)
{
	const MCSchedModel &model = tables->core->getSchedModel();
	unsigned number = described.getSchedClass();

	while (number != 0 && model.getSchedClassDesc(number)->isVariant())
		number = tables->core->resolveVariantSchedClass(number, &instruction,
								tables->instructions.get(),
								model.getProcessorID());
	const MCSchedClassDesc *found = model.getSchedClassDesc(number);
	return number != 0 && found->isValid() ? found : nullptr;
}

uint16_t cyclesOf(int cycles)
{
	return static_cast<uint16_t>(std::clamp(cycles, 0, 1000));
}

/* Parts of registers that no instruction names are read and written with their others. */
void add(struct operand *operands, uint8_t &count, unsigned most, MCRegister reg, int cycles)
{
	for (MCRegUnit unit : tables->registers->regunits(reg)) {
		const unsigned number = static_cast<unsigned>(unit);
		MCRegUnitRootIterator root(unit, tables->registers.get());
		if (number >= MOST_REGISTERS || count >= most || tables->registers->isArtificial(*root))
			continue;
		operands[count++] = {static_cast<uint16_t>(number), cyclesOf(cycles)};
	}
}

/* Push, pop, call and return change it in the front end, and wait for nobody (a stack engine). */
bool isStackEngines(const MCInstrDesc &described, MCRegister reg)
{
	return reg == tables->stack && described.hasImplicitUseOfPhysReg(reg) &&
	       described.hasImplicitDefOfPhysReg(reg);
}

void addReads(struct operation *operation, const MCInst &instruction, const MCInstrDesc &described,
	      const MCSchedClassDesc *scheduled)
{
	unsigned use = 0;
	const auto read = [&](MCRegister reg) {
		const int late = tables->core->getReadAdvanceCycles(scheduled, use++, 0);
		if (reg && !tables->registers->isConstant(reg) && !isStackEngines(described, reg))
			add(operation->reads, operation->read_count, MOST_READS, reg, late);
	};

	for (unsigned i = described.getNumDefs(); i < instruction.getNumOperands(); i++) {
		const MCOperand &operand = instruction.getOperand(i);
		if (operand.isReg())
			read(operand.getReg());
		else
			use++;
	}
	for (MCPhysReg reg : described.implicit_uses())
		read(reg);
}

void addWrites(struct operation *operation, const MCInst &instruction, const MCInstrDesc &described,
	       const MCSchedClassDesc *scheduled)
{
	unsigned number = 0;
	const auto write = [&](MCRegister reg) {
		const int latency =
			number < scheduled->NumWriteLatencyEntries
				? tables->core->getWriteLatencyEntry(scheduled, number)->Cycles
				: operation->latency;
		number++;
		if (reg && !tables->registers->isConstant(reg) && !isStackEngines(described, reg))
			add(operation->writes, operation->write_count, MOST_WRITES, reg, latency);
	};

	for (unsigned i = 0; i < described.getNumDefs() && i < instruction.getNumOperands(); i++)
		if (instruction.getOperand(i).isReg())
			write(instruction.getOperand(i).getReg());
	for (MCPhysReg reg : described.implicit_defs())
		write(reg);
}

/* Of units that a cycle's instructions cannot use up, nobody waits. */
void addUses(struct operation *operation, const MCSchedClassDesc *scheduled)
{
	const MCSchedModel &model = tables->core->getSchedModel();
	SmallVector<struct use, 16> uses;
	const auto unitsOf = [&](struct use use) { return model.getProcResource(use.kind)->NumUnits; };

	for (const MCWriteProcResEntry *entry = tables->core->getWriteProcResBegin(scheduled);
	     entry != tables->core->getWriteProcResEnd(scheduled); entry++) {
		const int cycles = entry->ReleaseAtCycle - entry->AcquireAtCycle;
		const unsigned kind = entry->ProcResourceIdx;
		if (cycles > 0 && kind < MOST_UNIT_KINDS &&
		    (cycles > 1 || model.getProcResource(kind)->NumUnits < model.IssueWidth))
			uses.push_back({static_cast<uint8_t>(kind),
					static_cast<uint8_t>(std::min(cycles, 255))});
	}
	std::sort(uses.begin(), uses.end(), [&](struct use one, struct use other) {
		const unsigned more = one.cycles * unitsOf(other), less = other.cycles * unitsOf(one);
		return more > less || (more == less && one.kind < other.kind);
	});
	operation->use_count = static_cast<uint8_t>(std::min<size_t>(uses.size(), MOST_USES));
	std::copy_n(uses.begin(), operation->use_count, operation->uses);
	operation->takes_long = std::any_of(operation->uses, operation->uses + operation->use_count,
					    [](struct use use) { return use.cycles > 1; });
}

/* XOR of a register with itself waits for nobody, and copies are made by renaming. */
bool isForgetful(const MCInst &instruction)
{
	const unsigned core = tables->core->getSchedModel().getProcessorID();
	APInt which;

	return tables->analysis != nullptr &&
	       (tables->analysis->isZeroIdiom(instruction, which, core) ||
		tables->analysis->isDependencyBreaking(instruction, which, core));
}

bool isRenamed(const MCInst &instruction)
{
	return tables->analysis != nullptr &&
	       tables->analysis->isOptimizableRegisterMove(
		       instruction, tables->core->getSchedModel().getProcessorID());
}

/* What is read late is read when the value is loaded. */
void describeLoad(const MCInstrDesc &described, struct operation *operation)
{
	const unsigned usual = tables->core->getSchedModel().LoadLatency;
	uint16_t load = 0;

	for (uint8_t i = 0; i < operation->read_count; i++)
		load = std::max(load, operation->reads[i].cycles);
	/* That of Zen has a cycle more for one that loads and no more, which processors have not. */
	if (load == 0 && operation->latency == usual + 1 && described.getNumDefs() == 1 &&
	    described.implicit_defs().empty()) {
		operation->latency = static_cast<uint16_t>(usual);
		for (uint8_t i = 0; i < operation->write_count; i++)
			operation->writes[i].cycles =
				std::min(operation->writes[i].cycles, operation->latency);
	}
	operation->load_latency = std::min<uint16_t>(
		load > 0 ? load : cyclesOf(static_cast<int>(usual)), std::max<uint16_t>(1, operation->latency));
}

bool isVector(MCRegister reg)
{
	return reg && StringRef(tables->registers->getName(reg)).contains("MM");
}

void describe(const MCInst &instruction, struct operation *operation)
{
	const MCInstrDesc &described = tables->instructions->get(instruction.getOpcode());
	const MCSchedClassDesc *scheduled = classOf(instruction, described);

	operation->stores = described.mayStore();
	operation->branches = described.isConditionalBranch();
	operation->compares = described.getNumDefs() == 0 && !described.mayStore() &&
			      described.implicit_defs().size() == 1 &&
			      described.implicit_defs()[0] == tables->flags;
	for (const MCOperand &operand : instruction)
		operation->is_vector |= operand.isReg() && isVector(operand.getReg());
	if (scheduled == nullptr)
		return;
	operation->slots = static_cast<uint8_t>(
		std::clamp<unsigned>(scheduled->NumMicroOps, 1, UINT8_MAX));
	const bool renamed = isRenamed(instruction);
	const bool forgetful = isForgetful(instruction);
	operation->latency = renamed || forgetful
				     ? 0
				     : cyclesOf(MCSchedModel::computeInstrLatency(*tables->core, *scheduled));
	if (!forgetful)
		addReads(operation, instruction, described, scheduled);
	addWrites(operation, instruction, described, scheduled);
	for (uint8_t i = 0; i < operation->write_count && (renamed || forgetful); i++)
		operation->writes[i].cycles = 0;
	if (!renamed && !forgetful)
		addUses(operation, scheduled);
	if (described.mayLoad())
		describeLoad(described, operation);
}

} // namespace

extern "C" const char *operations_open(const char *target, const char *cpu,
				       struct pipeline *pipeline)
{
	static std::string complaint;
	const Triple triple(std::string(target) + "-linux-gnu");

	InitializeAllTargetInfos();
	InitializeAllTargetMCs();
	InitializeAllDisassemblers();
	const Target *found = TargetRegistry::lookupTarget(triple, complaint);
	if (found == nullptr)
		return complaint.c_str();
	tables = new Tables;
	tables->registers.reset(found->createMCRegInfo(triple));
	tables->assembly.reset(found->createMCAsmInfo(*tables->registers, triple, tables->options));
	tables->instructions.reset(found->createMCInstrInfo());
	tables->core.reset(found->createMCSubtargetInfo(triple, cpu, ""));
	if (!tables->core->isCPUStringValid(cpu) || !tables->core->getSchedModel().hasInstrSchedModel())
		return "LLVM has no scheduling model of it";
	/* Of what its model is of, whatever the architecture's options: guests may have more. */
	tables->context = std::make_unique<MCContext>(triple, tables->assembly.get(),
						      tables->registers.get(), tables->core.get());
	tables->disassembler.reset(found->createMCDisassembler(*tables->core, *tables->context));
	tables->analysis.reset(found->createMCInstrAnalysis(tables->instructions.get()));
	for (unsigned reg = 1; reg < tables->registers->getNumRegs(); reg++) {
		const StringRef name = tables->registers->getName(reg);
		if (name == "RSP")
			tables->stack = reg;
		else if (name == "EFLAGS")
			tables->flags = reg;
	}

	const MCSchedModel &model = tables->core->getSchedModel();
	*pipeline = {};
	pipeline->width = model.IssueWidth;
	pipeline->window = static_cast<uint32_t>(model.MicroOpBufferSize);
	pipeline->unit_kinds = std::min<unsigned>(model.getNumProcResourceKinds(), MOST_UNIT_KINDS);
	for (unsigned i = 1; i < pipeline->unit_kinds; i++)
		pipeline->units[i] = static_cast<uint8_t>(
			std::min<unsigned>(model.getProcResource(i)->NumUnits, UINT8_MAX));
	return nullptr;
}

extern "C" void operation_of(const uint8_t *bytes, size_t size, uint64_t address,
			     struct operation *operation)
{
	MCInst instruction;
	uint64_t length;

	*operation = {};
	operation->address = address;
	operation->latency = 1;
	operation->slots = 1;
	if (tables->disassembler->getInstruction(instruction, length, ArrayRef<uint8_t>(bytes, size),
						 address, nulls()) == MCDisassembler::Success)
		describe(instruction, operation);
}
