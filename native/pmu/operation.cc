/* LLVM's interface: llvm/MC/MCSchedule.h; llvm/lib/MCA/InstrBuilder.cpp reads the same tables. */
#include "operation.h"
#include "core.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

#if LLVM_VERSION_MAJOR < 22
#error "LLVM 22 is needed"
#endif

using namespace llvm;

namespace {

/* From this latency on, LLVM's numbers are placeholders for missing measurements. */
constexpr int PLACEHOLDER = 100;

struct Tables {
	MCTargetOptions options;
	std::unique_ptr<MCRegisterInfo> registers;
	std::unique_ptr<MCAsmInfo> assembly;
	std::unique_ptr<MCInstrInfo> instructions;
	std::unique_ptr<MCSubtargetInfo> core;
	std::unique_ptr<MCContext> context;
	std::unique_ptr<MCDisassembler> disassembler;
	std::unique_ptr<MCInstrAnalysis> analysis;
	/* LLVM's, by address and number of entries; many instructions share them. */
	std::map<std::pair<const MCReadAdvanceEntry *, size_t>, std::vector<struct bypass>> bypasses;
	const Core *corrections;
	MCRegister stack;
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

int16_t cyclesOf(int cycles)
{
	return static_cast<int16_t>(std::clamp(cycles, -100, 1000));
}

/* Parts of registers that no instruction names are read and written together with the others. */
void add(struct operand *operands, uint8_t &count, unsigned capacity, MCRegister reg, int cycles,
	 unsigned of)
{
	for (MCRegUnit unit : tables->registers->regunits(reg)) {
		const unsigned number = static_cast<unsigned>(unit);
		MCRegUnitRootIterator root(unit, tables->registers.get());
		if (number >= MAX_REGISTERS || count >= capacity || tables->registers->isArtificial(*root))
			continue;
		operands[count++] = {static_cast<uint16_t>(number), cyclesOf(cycles),
				     static_cast<uint16_t>(of)};
	}
}

/* Push, pop, call and return change it in the front end, without waiting (a stack engine). */
bool isStackEngines(const MCInstrDesc &described, MCRegister reg)
{
	return reg == tables->stack && described.hasImplicitUseOfPhysReg(reg) &&
	       described.hasImplicitDefOfPhysReg(reg);
}

void addReads(struct operation *operation, const MCInst &instruction, const MCInstrDesc &described,
	      const MCSchedClassDesc *scheduled, bool only_implicit)
{
	unsigned number = 0;
	const auto read = [&](MCRegister reg) {
		const unsigned use = number++;
		if (reg && !tables->registers->isConstant(reg) && !isStackEngines(described, reg))
			add(operation->reads, operation->read_count, MAX_READS, reg,
			    tables->core->getReadAdvanceCycles(scheduled, use, 0), use);
	};

	for (unsigned i = described.getNumDefs(); i < instruction.getNumOperands(); i++) {
		const MCOperand &operand = instruction.getOperand(i);
		read(operand.isReg() && !only_implicit ? operand.getReg() : MCRegister());
	}
	for (MCPhysReg reg : described.implicit_uses())
		read(reg);
}

/* Entries that name a writer; the others are in the reads. */
void addBypasses(struct operation *operation, const MCSchedClassDesc *scheduled)
{
	const ArrayRef<MCReadAdvanceEntry> entries = tables->core->getReadAdvanceEntries(*scheduled);
	const auto [found, is_new] = tables->bypasses.try_emplace({entries.data(), entries.size()});

	if (is_new)
		for (const MCReadAdvanceEntry &entry : entries)
			if (entry.WriteResourceID != 0)
				found->second.push_back({static_cast<uint16_t>(entry.UseIdx),
							 static_cast<uint16_t>(entry.WriteResourceID),
							 cyclesOf(entry.Cycles)});
	operation->bypasses = found->second.data();
	operation->bypass_count = static_cast<uint32_t>(found->second.size());
}

void addWrites(struct operation *operation, const MCInst &instruction, const MCInstrDesc &described,
	       const MCSchedClassDesc *scheduled)
{
	unsigned number = 0;
	const auto write = [&](MCRegister reg) {
		const MCWriteLatencyEntry *entry =
			number < scheduled->NumWriteLatencyEntries
				? tables->core->getWriteLatencyEntry(scheduled, number)
				: nullptr;
		const int latency = entry != nullptr ? std::max<int>(entry->Cycles, 0) : operation->latency;
		number++;
		if (reg && !tables->registers->isConstant(reg) && !isStackEngines(described, reg))
			add(operation->writes, operation->write_count, MAX_WRITES, reg, latency,
			    entry != nullptr ? entry->WriteResourceID : 0);
	};

	for (unsigned i = 0; i < described.getNumDefs() && i < instruction.getNumOperands(); i++)
		if (instruction.getOperand(i).isReg())
			write(instruction.getOperand(i).getReg());
	for (MCPhysReg reg : described.implicit_defs())
		write(reg);
}

/* Units that the instructions of a cycle cannot exhaust never cause waiting. */
void addUses(struct operation *operation, const MCSchedClassDesc *scheduled)
{
	const MCSchedModel &model = tables->core->getSchedModel();
	SmallVector<struct use, 16> uses;
	const auto unitsOf = [&](struct use use) { return model.getProcResource(use.kind)->NumUnits; };

	for (const MCWriteProcResEntry *entry = tables->core->getWriteProcResBegin(scheduled);
	     entry != tables->core->getWriteProcResEnd(scheduled); entry++) {
		const int cycles = entry->ReleaseAtCycle - entry->AcquireAtCycle;
		const unsigned kind = entry->ProcResourceIdx;
		if (cycles > 0 && kind < MAX_UNIT_KINDS &&
		    (cycles > 1 || model.getProcResource(kind)->NumUnits < model.IssueWidth))
			uses.push_back({static_cast<uint8_t>(kind),
					static_cast<uint8_t>(std::min(cycles, 255))});
	}
	std::sort(uses.begin(), uses.end(), [&](struct use one, struct use other) {
		const unsigned more = one.cycles * unitsOf(other), less = other.cycles * unitsOf(one);
		return more > less || (more == less && one.kind < other.kind);
	});
	operation->use_count = static_cast<uint8_t>(std::min<size_t>(uses.size(), MAX_USES));
	std::copy_n(uses.begin(), operation->use_count, operation->uses);
	operation->takes_long = std::any_of(operation->uses, operation->uses + operation->use_count,
					    [](struct use use) { return use.cycles > 1; });
}

unsigned processor()
{
	return tables->core->getSchedModel().getProcessorID();
}

/* Renaming executes the exclusive-or of a register with itself, and copies. */
bool isZeroIdiom(const MCInst &instruction)
{
	APInt which;

	return tables->analysis != nullptr &&
	       tables->analysis->isZeroIdiom(instruction, which, processor());
}

bool isRenamed(const Decoded &instruction)
{
	const bool by_llvm =
		tables->analysis != nullptr &&
		tables->analysis->isOptimizableRegisterMove(instruction.operands, processor());

	return tables->corrections->isRenamed(instruction, by_llvm);
}

/* SBB of a register with itself waits only for the flags. */
bool isDependencyBreaking(const MCInst &instruction)
{
	APInt which;

	return tables->analysis != nullptr &&
	       tables->analysis->isDependencyBreaking(instruction, which, processor());
}

/* All results are ready by then. */
void writeBy(struct operation *operation, int16_t cycles)
{
	for (uint8_t i = 0; i < operation->write_count; i++)
		operation->writes[i].cycles = std::min(operation->writes[i].cycles, cycles);
}

/* Operands that are needed late are needed when the value is loaded. */
void describeLoad(struct operation *operation)
{
	const int16_t usual = static_cast<int16_t>(tables->core->getSchedModel().LoadLatency);
	int16_t load = 0;

	for (uint8_t i = 0; i < operation->read_count; i++)
		if (operation->reads[i].cycles >= usual)
			load = std::max(load, operation->reads[i].cycles);
	operation->load_latency = static_cast<uint16_t>(
		std::min<int>(load > 0 ? load : usual, std::max<int>(1, operation->latency)));
}

bool isVector(MCRegister reg)
{
	return reg && tables->corrections->isVector(tables->registers->getName(reg));
}

void describe(const MCInst &instruction, struct operation *operation)
{
	const MCInstrDesc &described = tables->instructions->get(instruction.getOpcode());
	const MCSchedClassDesc *scheduled = classOf(instruction, described);

	operation->stores = described.mayStore();
	const StringRef name = tables->instructions->getName(instruction.getOpcode());
	const Decoded decoded{instruction, described, name, *tables->core, *tables->registers};
	const Core &corrections = *tables->corrections;
	operation->crossing = corrections.crossing(name);
	operation->branches_by = corrections.branchesBy(decoded);
	operation->fuses_by = corrections.fusesBy(decoded);
	for (const MCOperand &operand : instruction)
		operation->is_vector |= operand.isReg() && isVector(operand.getReg());
	operation->forwards_late = operation->is_vector;
	if (scheduled == nullptr)
		return;
	const int latency = MCSchedModel::computeInstrLatency(*tables->core, *scheduled);
	const bool is_placeholder = latency >= PLACEHOLDER && described.hasUnmodeledSideEffects() &&
				    !corrections.isDivision(name);
	const bool is_zero = isZeroIdiom(instruction);
	const bool renamed = is_zero || isRenamed(decoded);
	if (!is_placeholder) {
		operation->slots = static_cast<uint8_t>(
			std::clamp<unsigned>(scheduled->NumMicroOps, 1, UINT8_MAX));
		operation->latency = renamed ? 0 : static_cast<uint16_t>(std::clamp(latency, 0, 1000));
		if (!renamed)
			addUses(operation, scheduled);
	}
	if (!is_zero)
		addReads(operation, instruction, described, scheduled,
			 isDependencyBreaking(instruction));
	addWrites(operation, instruction, described, scheduled);
	addBypasses(operation, scheduled);
	if (renamed || is_placeholder)
		writeBy(operation, static_cast<int16_t>(operation->latency));
	if (described.mayLoad())
		describeLoad(operation);
	if (!is_placeholder)
		corrections.correct(decoded, operation);
}

} // namespace

extern "C" const char *operations_open(const char *target, const char *cpu,
				       struct pipeline *pipeline)
{
	static std::string error;
	const Triple triple(std::string(target) + "-linux-gnu");

	InitializeAllTargetInfos();
	InitializeAllTargetMCs();
	InitializeAllDisassemblers();
	const Target *found = TargetRegistry::lookupTarget(triple, error);
	if (found == nullptr)
		return error.c_str();
	tables = new Tables;
	tables->registers.reset(found->createMCRegInfo(triple));
	tables->assembly.reset(found->createMCAsmInfo(*tables->registers, triple, tables->options));
	tables->instructions.reset(found->createMCInstrInfo());
	tables->core.reset(found->createMCSubtargetInfo(triple, cpu, ""));
	if (!tables->core->isCPUStringValid(cpu) || !tables->core->getSchedModel().hasInstrSchedModel())
		return "LLVM has no scheduling model of it";
	/*
	 * Disassemble by the model's core, whatever the architecture's options: guests may have
	 * more.
	 */
	tables->context = std::make_unique<MCContext>(triple, tables->assembly.get(),
						      tables->registers.get(), tables->core.get());
	tables->disassembler.reset(found->createMCDisassembler(*tables->core, *tables->context));
	tables->analysis.reset(found->createMCInstrAnalysis(tables->instructions.get()));
	tables->corrections = &CoreFamily::find(*tables->core);
	for (unsigned reg = 1; reg < tables->registers->getNumRegs(); reg++)
		if (tables->registers->getName(reg) == tables->corrections->stackRegister())
			tables->stack = reg;

	const MCSchedModel &model = tables->core->getSchedModel();
	*pipeline = {};
	pipeline->width = model.IssueWidth;
	pipeline->window = static_cast<uint32_t>(model.MicroOpBufferSize);
	pipeline->unit_kinds = std::min<unsigned>(model.getNumProcResourceKinds(), MAX_UNIT_KINDS);
	for (unsigned i = 1; i < pipeline->unit_kinds; i++)
		pipeline->units[i] = static_cast<uint8_t>(
			std::min<unsigned>(model.getProcResource(i)->NumUnits, UINT8_MAX));
	return nullptr;
}

extern "C" void operation_of(const uint8_t *bytes, size_t size, uint64_t address,
			     struct operation *operation)
{
	ArrayRef<uint8_t> left(bytes, size);
	MCInst instruction;
	uint64_t length;
	bool is_known = false;

	*operation = {};
	operation->address = address;
	operation->size = static_cast<uint8_t>(size);
	operation->latency = 1;
	operation->slots = 1;
	/* LLVM decodes some prefixes, such as LOCK, as separate instructions. */
	do {
		instruction.clear();
		is_known = tables->disassembler->getInstruction(instruction, length, left, address,
								nulls()) == MCDisassembler::Success;
		left = left.drop_front(std::min<uint64_t>(length, left.size()));
	} while (is_known && !left.empty());
	if (is_known)
		describe(instruction, operation);
}
