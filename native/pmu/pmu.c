/*
 * QEMU TCG plugin: a model of a core's caches, TLBs, branch predictors and pipeline, driven by what
 * the guest executes between its start and stop marks, or from the beginning to the end.
 *
 *   -plugin pmu.so,out=FILE[,where=FILE],… (docs/pmu.md has the arguments)
 *
 * It counts what count.so counts, with the same definitions: instructions when they start (inline),
 * and a branch as taken unless the next block is its fall-through.
 *
 * Each block has a callback at its start, and notes itself when its last instruction starts. So the
 * callback knows how control came here: a noted block was executed to its end; without one, an
 * exception led here. Each access to data has a callback, which is short if the page is the last
 * one and the line the last one of its set.
 *
 * With cpus=turns (turns.h) callbacks do what inline code does otherwise, on the state of the vCPU that
 * executes.
 *
 * Each vCPU has a model of its own. While they run they share only the list of blocks, which grows
 * at translation.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tcg-plugin/marks.h"
#include "../tcg-plugin/registers.h"
#include "../tcg-plugin/turns.h"
#include "blocks.h"
#include "crossing.h"
#include "interval.h"
#include "pages.h"
#include "qemu_memory_api.h"
#include "settings.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

enum { MAX_VCPUS = 1024, MAX_BLOCK_INSNS = 512 };

/* What inline code accesses, one per vCPU. QEMU may move it. */
struct noted {
	uint64_t instructions[SIDES];
	uint64_t repeats[SIDES]; /* REPs that began */
	/* The block whose last instruction started, a const struct pmu_block *, or 0. */
	uint64_t block;
	/* The REP that is under way, or 0. */
	uint64_t repeat;
};

static const struct instruction_set *instructions;
static bool is_system;
static struct qemu_plugin_scoreboard *notes;
static struct pmu_settings settings;
static struct vcpu *vcpus[MAX_VCPUS];
/* With cpus=turns: instead of `notes`, and the number of the vCPU that executes. */
static struct noted turning[MAX_TURNS];
static unsigned int executing;

/* NULL if the sizes of user pages are unknown. */
static const struct page_format *format;
static struct guest_memory memory;

/* Of user code's address space, NULL in user-mode emulation, and of the format of its tables. */
static struct qemu_plugin_register *space_register, *control_register;

static qemu_plugin_u64 member(size_t offset)
{
	return (qemu_plugin_u64){notes, offset};
}
#define MEMBER(name) member(offsetof(struct noted, name))

static struct noted *noted_at(unsigned int index)
{
	return settings.takes_turns ? &turning[index] : qemu_plugin_scoreboard_find(notes, index);
}

/* From the index that QEMU passes. */
static unsigned int index_of(unsigned int given)
{
	return settings.takes_turns ? executing : given;
}

static void die(const char *what)
{
	fprintf(stderr, "pmu: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Pages */

/* The key of an address in TLBs: the number of the page, tagged with its size. */
static uint64_t page_key(uint64_t address, uint32_t bits)
{
	return address >> bits ^ (uint64_t)bits << 56;
}

static uint64_t kernel_page(uint64_t address, bool is_text)
{
	if (instructions->has_small_pages(address, is_text))
		return page_key(address, SMALL_PAGE);
	return page_key(address, is_text ? settings.kernel_text_page : settings.kernel_data_page);
}

static uint64_t user_page(const struct vcpu *vcpu, uint64_t address, struct tally tally)
{
	const uint32_t bits = format != NULL ? format->page_bits(&memory, &vcpu->tables, address)
					     : UNKNOWN_PAGE;

	if (bits != UNKNOWN_PAGE)
		return page_key(address, bits);
	count(tally, EVENT_unknown_pages);
	return page_key(address, SMALL_PAGE);
}

/* Keys of user addresses differ by address space; kernel addresses are in all of them. */
static uint64_t space_of(const struct vcpu *vcpu, uint64_t address)
{
	return is_kernel(instructions, address) ? 0 : vcpu->space;
}

/* Execution */

static struct tally tally_in(struct vcpu *vcpu, const struct pmu_block *block)
{
	struct site *site = settings.where != NULL ? site_of(&vcpu->sites, block->id) : NULL;

	return (struct tally){vcpu->totals[block->is_kernel], site != NULL ? site->events : NULL};
}

/* Gives the instructions of the last block their times, now that their misses are known. */
static uint64_t ran(struct vcpu *vcpu)
{
	const struct pmu_block *block = vcpu->running;

	if (block == NULL)
		return 0;
	const struct tally tally = tally_in(vcpu, block);
	const uint64_t executed =
		window_execute(&vcpu->window, block->operations, block->size, vcpu->accesses,
			       vcpu->access_count, tally.total, tally.site);
	if (block->ends_with_repeat)
		window_takes(&vcpu->window, settings.window.repeat_start, tally.total, tally.site);
	vcpu->running = NULL;
	vcpu->access_count = 0;
	return executed;
}

static void left(struct vcpu *vcpu, struct noted *noted, const struct pmu_block *block,
		 uint64_t to, uint64_t executed)
{
	const struct tally tally = tally_in(vcpu, block);

	if (block->ends_with_repeat) {
		if (to == block->branch.next)
			noted->repeat = 0;
		return;
	}
	if (model_branch(&vcpu->model, &block->branch, to, tally)) {
		count(tally, EVENT_taken_branches);
		window_turn(&vcpu->window);
	}
	if (vcpu->model.misprediction == EVENT_btb_misses)
		window_redirected(&vcpu->window, settings.core.latency.btb_miss);
	else if (vcpu->model.misprediction != EVENTS)
		window_mispredicted(&vcpu->window, executed);
	else
		window_predicts_late(&vcpu->window, vcpu->model.late);
}

static void slice_ends(struct vcpu *vcpu)
{
	fprintf(vcpu->slices, "%s", vcpu->has_slices ? "," : "");
	sites_slice(vcpu->slices, &vcpu->sites);
	vcpu->has_slices = true;
	vcpu->slice_left = (int64_t)settings.slice;
}

static uint64_t code_page(struct vcpu *vcpu, const struct pmu_block *block, uint32_t number,
			  struct tally tally)
{
	const uint64_t page = block->pages[number];

	if (block->is_kernel)
		return page;
	if ((page ^ vcpu->space) != vcpu->last_user_code) {
		vcpu->last_user_code = page ^ vcpu->space;
		vcpu->last_user_key = user_page(vcpu, page << SMALL_PAGE, tally) ^ vcpu->space;
	}
	return vcpu->last_user_key;
}

static void fetch(struct vcpu *vcpu, const struct pmu_block *block, bool begins,
		  struct tally tally)
{
	/* The lines of a block are consecutive. */
	const uint64_t first = block->start >> settings.core.line_bits;
	uint32_t pages = 0;

	for (uint32_t i = 0; i < block->line_count; i++) {
		uint32_t translating = 0;
		if (pages < block->page_count && i >= block->first_lines[pages])
			translating = model_code_page(
				&vcpu->model, code_page(vcpu, block, pages++, tally), tally);
		const uint32_t missing = model_code_line(&vcpu->model, block->lines[i], tally);
		/* Code that the current REP misses again was evicted by an interrupt. */
		if (begins && translating + missing > 0)
			window_code_misses(&vcpu->window, first + i, translating, missing);
	}
}

static void enter(unsigned int index, void *userdata)
{
	const struct pmu_block *block = userdata;
	struct vcpu *vcpu = vcpus[index];
	struct noted *noted = noted_at(index);
	const struct pmu_block *last = (const struct pmu_block *)(uintptr_t)noted->block;
	bool begins = true;

	noted->block = 0;
	const uint64_t executed = ran(vcpu);
	if (last != NULL && (last->branch.transfer != TRANSFER_NONE || last->ends_with_repeat))
		left(vcpu, noted, last, block->start, executed);
	if (block->begins_with_repeat) {
		begins = noted->repeat != block->start;
		noted->instructions[block->is_kernel] += begins;
		noted->repeats[block->is_kernel] += begins;
	}
	struct tally tally = {vcpu->totals[block->is_kernel], NULL};
	if (settings.where != NULL) {
		struct site *site = site_of(&vcpu->sites, block->id);
		if (site != NULL) {
			site->executions += begins;
			tally.site = site->events;
		}
		vcpu->slice_left -= begins ? block->size : 0;
		if (vcpu->slice_left < 0)
			slice_ends(vcpu);
	}
	const uint32_t entering = crossing_into(&settings.crossing, vcpu->entered, last != NULL, block,
						&vcpu->handler);
	if (entering > 0)
		window_takes(&vcpu->window, entering, tally.total, tally.site);
	fetch(vcpu, block, begins, tally);
	vcpu->running = begins ? block : NULL;
	vcpu->entered = block;
}

/*
 * The page of the top-level table. Page and line numbers of user code have fewer than 44 bits.
 */
static void set_space(struct vcpu *vcpu, struct qemu_plugin_register *from)
{
	const uint64_t root = register_value(from);

	if (format != NULL)
		vcpu->tables = (struct page_tables){root, register_value(control_register)};
	vcpu->space = root >> instructions->space_low_bits << 44;
	vcpu->has_space = true;
}

static void space_is_set(unsigned int index, void *from)
{
	set_space(vcpus[index_of(index)], from);
}

/* The same as inline code and enter(), where vCPUs take turns. */

static void enter_in_turn(unsigned int index, void *block)
{
	(void)index;
	executing = turns_vcpu();
	if (!vcpus[executing]->has_space && space_register != NULL)
		set_space(vcpus[executing], space_register);
	enter(executing, block);
}

static void executes(unsigned int index, void *side)
{
	(void)index;
	turning[executing].instructions[(uintptr_t)side]++;
}

static void repeat_begins(unsigned int index, void *side)
{
	(void)index;
	turning[executing].repeats[(uintptr_t)side]++;
}

static void repeat_is(unsigned int index, void *address)
{
	(void)index;
	turning[executing].repeat = (uintptr_t)address;
}

static void block_is(unsigned int index, void *block)
{
	(void)index;
	turning[executing].block = (uintptr_t)block;
}

static uint64_t physical_line(qemu_plugin_meminfo_t info, uint64_t address, uint64_t line)
{
	if (!is_system)
		return line;
	const struct qemu_plugin_hwaddr *where = qemu_plugin_get_hwaddr(info, address);
	if (where == NULL || qemu_plugin_hwaddr_is_io(where))
		return UINT64_MAX;
	return qemu_plugin_hwaddr_phys_addr(where) >> settings.core.line_bits;
}

/* Returns the cycles beyond those of a hit. */
static inline uint32_t touch(struct vcpu *vcpu, qemu_plugin_meminfo_t info, uint64_t address,
			     const struct pmu_block *block)
{
	const uint64_t space = space_of(vcpu, address);
	const uint64_t small_page = address >> SMALL_PAGE ^ space;
	const uint64_t line = address >> settings.core.line_bits ^ space;
	uint32_t cycles = 0;

	if (small_page != vcpu->last_page) {
		vcpu->last_page = small_page;
		const struct tally tally = tally_in(vcpu, block);
		const uint64_t page = is_kernel(instructions, address)
					      ? kernel_page(address, false)
					      : user_page(vcpu, address, tally);
		cycles = model_data_page(&vcpu->model, page ^ space, tally);
	}
	if (!cache_touch(&vcpu->model.l1d, line))
		cycles += model_data_miss(&vcpu->model, line, physical_line(info, address, line),
					  tally_in(vcpu, block));
	return cycles;
}

static inline void data_access(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address,
			       const struct location *location, enum event event)
{
	struct vcpu *vcpu = vcpus[index_of(index)];

	vcpu->totals[location->block->is_kernel][event]++;
	const uint32_t cycles = touch(vcpu, info, address, location->block);
	if (vcpu->access_count < MAX_ACCESSES)
		vcpu->accesses[vcpu->access_count++] = (struct access){
			.address = address,
			.missing = cycles,
			.operation = location->operation,
			.bytes = (uint8_t)(1u << qemu_plugin_mem_size_shift(info)),
			.is_store = event == EVENT_stores,
		};
}

static void load(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address, void *location)
{
	data_access(index, info, address, location, EVENT_loads);
}

static void store(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address, void *location)
{
	data_access(index, info, address, location, EVENT_stores);
}

/*
 * Processors move whole lines for a REP: each line is one access, whatever the size of its units.
 */
static void repeat_access(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address,
			  const struct pmu_block *block, enum event event)
{
	struct vcpu *vcpu = vcpus[index_of(index)];
	uint64_t *last = &vcpu->last_repeat_line[event == EVENT_stores];

	if (block->repeat.stores == (event == EVENT_stores)) {
		struct repeats *repeats = &vcpu->repeats[block->is_kernel];
		repeats->half_iterations += 2u / block->repeat.accesses;
		repeats->half_bytes += 2u / block->repeat.accesses * block->repeat.unit;
	}
	if (*last == address >> settings.core.line_bits)
		return;
	*last = address >> settings.core.line_bits;
	const struct tally tally = tally_in(vcpu, block);
	tally.total[event]++;
	window_repeats(&vcpu->window, touch(vcpu, info, address, block), tally.total, tally.site);
}

static void repeat_load(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address,
			void *location)
{
	repeat_access(index, info, address, ((const struct location *)location)->block, EVENT_loads);
}

static void repeat_store(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address,
			 void *location)
{
	repeat_access(index, info, address, ((const struct location *)location)->block, EVENT_stores);
}

/* Intervals */

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
static void at_exit(qemu_plugin_id_t id, void *userdata);
static void vcpu_begins(qemu_plugin_id_t id, unsigned int index);

static void register_callbacks(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_init_cb(id, vcpu_begins);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
}

/* Page tables cannot be read without the guest's memory and the register of their format. */
static void find_page_tables(void)
{
	if (format != NULL)
		control_register = register_named(format->control);
	if (control_register == NULL || !guest_memory_find(&memory, format))
		format = NULL;
}

static void vcpu_begins(qemu_plugin_id_t id, unsigned int index)
{
	(void)id;
	if (index >= MAX_VCPUS)
		die("too many vCPUs");
	if (vcpus[index] != NULL)
		return;
	vcpus[index] = vcpu_new(&settings);
	if (vcpus[index] == NULL)
		die("not enough memory for the model");
	if (is_system)
		space_register = register_named(instructions->space);
	if (index == 0)
		find_page_tables();
}

static void interval_begins(void)
{
	for (unsigned i = 0; i < MAX_VCPUS; i++) {
		if (vcpus[i] == NULL)
			continue;
		*noted_at(i) = (struct noted){0};
		vcpu_clear(vcpus[i], &settings);
	}
}

static struct executed executed(void)
{
	struct executed sum = {{0}, {0}};

	for (int side = USER; side < SIDES; side++) {
		for (size_t i = 0; settings.takes_turns && i < MAX_TURNS; i++) {
			sum.instructions[side] += turning[i].instructions[side];
			sum.repeats[side] += turning[i].repeats[side];
		}
		if (settings.takes_turns)
			continue;
		sum.instructions[side] = qemu_plugin_u64_sum(MEMBER(instructions[side]));
		sum.repeats[side] = qemu_plugin_u64_sum(MEMBER(repeats[side]));
	}
	return sum;
}

static void interval_ends(void)
{
	if (!interval_write(&settings, executed(), vcpus, MAX_VCPUS))
		die(settings.out);
}

static void at_exit(qemu_plugin_id_t id, void *userdata)
{
	(void)id;
	(void)userdata;
	if (settings.all)
		interval_ends();
}

/* Translation */

/*
 * Watched between intervals too: the code of an interval has often been switched to before it. Where
 * vCPUs take turns, each reads it at its first block.
 */
static void watch_space(struct qemu_plugin_insn *insn, const uint8_t *bytes, size_t size)
{
	const char *name = is_system ? instructions->space_register(bytes, size) : NULL;
	struct qemu_plugin_register *from = NULL;

	if (name != NULL && (marks_within() || !settings.takes_turns))
		from = register_named(name);
	if (from != NULL)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, space_is_set, QEMU_PLUGIN_CB_R_REGS, from);
}

static void call_at(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_udata_cb_t call, uint64_t what)
{
	qemu_plugin_register_vcpu_insn_exec_cb(insn, call, QEMU_PLUGIN_CB_NO_REGS,
					       (void *)(uintptr_t)what);
}

static void note(struct qemu_plugin_insn *insn, qemu_plugin_u64 where, uint64_t what)
{
	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_STORE_U64, where,
							    what);
}

static void count_insn(struct qemu_plugin_insn *insn, int side, bool repeats)
{
	if (settings.takes_turns)
		call_at(insn, executes, (uint64_t)side);
	else
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
			insn, QEMU_PLUGIN_INLINE_ADD_U64, MEMBER(instructions[side]), 1);
	if (repeats && settings.takes_turns)
		call_at(insn, repeat_begins, (uint64_t)side);
	else if (repeats)
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
			insn, QEMU_PLUGIN_INLINE_ADD_U64, MEMBER(repeats[side]), 1);
}

static void note_repeat(struct qemu_plugin_insn *insn)
{
	const uint64_t address = qemu_plugin_insn_vaddr(insn);

	if (settings.takes_turns)
		call_at(insn, repeat_is, address);
	else
		note(insn, MEMBER(repeat), address);
}

static void note_block(struct qemu_plugin_insn *last, const struct pmu_block *block)
{
	if (settings.takes_turns)
		call_at(last, block_is, (uintptr_t)block);
	else
		note(last, MEMBER(block), (uintptr_t)block);
}

static void watch_insn(struct qemu_plugin_insn *insn, enum insn_kind kind, bool first,
		       const struct location *location)
{
	const bool repeats = kind == INSN_REPEAT;

	if (!(repeats && first))
		count_insn(insn, location->block->is_kernel, repeats);
	if (repeats)
		note_repeat(insn);
	qemu_plugin_register_vcpu_mem_cb(insn, repeats ? repeat_load : load, QEMU_PLUGIN_CB_NO_REGS,
					 QEMU_PLUGIN_MEM_R, (void *)location);
	qemu_plugin_register_vcpu_mem_cb(insn, repeats ? repeat_store : store, QEMU_PLUGIN_CB_NO_REGS,
					 QEMU_PLUGIN_MEM_W, (void *)location);
}

static void add_code(struct pmu_block *block, const struct qemu_plugin_insn *insn)
{
	const uint64_t address = qemu_plugin_insn_vaddr(insn);
	const uint64_t last_byte = qemu_plugin_insn_size(insn) - 1;
	const void *host = is_system ? qemu_plugin_insn_haddr(insn) : NULL;
	const uint64_t code = host != NULL ? (uintptr_t)host : address;

	for (int i = 0; i < 2; i++) {
		const uint64_t byte = address + i * last_byte;
		const uint64_t page = is_kernel(instructions, byte) ? kernel_page(byte, true)
								    : byte >> SMALL_PAGE;
		const uint64_t line = (code + i * last_byte) >> settings.core.line_bits;
		const uint32_t pages = block->page_count, lines = block->line_count;
		if (lines == 0 || block->lines[lines - 1] != line)
			block->lines[block->line_count++] = line;
		if (pages == 0 || (block->pages[pages - 1] != page && pages < MAX_PAGES)) {
			block->first_lines[pages] = block->line_count - 1;
			block->pages[block->page_count++] = page;
		}
	}
}

static void describe(struct pmu_block *block, void *tb)
{
	for (uint32_t i = 0; i < block->size; i++) {
		const struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t bytes[MAX_INSN_BYTES];
		const size_t size = qemu_plugin_insn_data(insn, bytes, sizeof(bytes));
		operation_of(bytes, size, qemu_plugin_insn_vaddr(insn), &block->operations[i]);
		if (instructions->kind(bytes, size) == INSN_EVENT_RETURN &&
		    block->operations[i].crossing == CROSSING_NONE)
			block->operations[i].crossing = CROSSING_EVENT_RETURN;
		block->operations[i].alone =
			crossing_alone(&settings.crossing, block->operations[i].crossing);
		/* The instruction that sets the flags and the branch on them fuse. */
		if (i > 0 && block->operations[i - 1].fuses_by & block->operations[i].branches_by)
			block->operations[i].slots = 0;
	}
}

/* FNV-1a, continued from `hash`. */
static uint64_t hash_on(uint64_t hash, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u;
	return hash;
}

/* An instruction of that kind, which ends at `next`. */
static struct branch branch_of(enum insn_kind kind, const uint8_t *bytes, size_t size,
			       uint64_t next)
{
	struct branch branch = {.address = next - size,
				.next = next,
				.target = instructions->direct_target(bytes, size, next)};

	if (kind == INSN_CONDITIONAL)
		branch.transfer = TRANSFER_CONDITIONAL;
	else if (kind == INSN_UNCONDITIONAL)
		branch.transfer = instructions->transfer(bytes, size);
	return branch;
}

static const struct pmu_block *block_of(struct qemu_plugin_tb *tb, const enum insn_kind *kinds,
					const uint8_t *last_bytes, uint64_t code)
{
	/* An instruction adds at most two lines. */
	static _Thread_local union {
		struct pmu_block block;
		uint64_t words[sizeof(struct pmu_block) / sizeof(uint64_t) + 2 * MAX_BLOCK_INSNS];
	} buffer;
	struct pmu_block *block = &buffer.block;
	const size_t count = qemu_plugin_tb_n_insns(tb);
	const struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, count - 1);

	memset(block, 0, sizeof(*block));
	block->start = qemu_plugin_tb_vaddr(tb);
	block->size = (uint32_t)count;
	block->code = code;
	block->is_kernel = is_kernel(instructions, block->start);
	block->begins_with_repeat = kinds[0] == INSN_REPEAT;
	block->ends_with_repeat = kinds[count - 1] == INSN_REPEAT;
	if (block->ends_with_repeat)
		block->repeat = instructions->repeat(last_bytes, qemu_plugin_insn_size(last));
	for (size_t i = 0; i < count; i++)
		add_code(block, qemu_plugin_tb_get_insn(tb, i));
	const size_t size = qemu_plugin_insn_size(last);
	block->branch = branch_of(kinds[count - 1], last_bytes, size,
				  qemu_plugin_insn_vaddr(last) + size);
	return block_known(block, describe, tb);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	const size_t count = qemu_plugin_tb_n_insns(tb);
	enum insn_kind kinds[MAX_BLOCK_INSNS];
	uint8_t bytes[MAX_INSN_BYTES] = {0};
	uint64_t code = 0xcbf29ce484222325u;

	(void)id;
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const size_t size = qemu_plugin_insn_data(insn, bytes, sizeof(bytes));
		kinds[i] = instructions->kind(bytes, size);
		code = hash_on(code, bytes, size);
		watch_space(insn, bytes, size);
	}
	if (marks_within()) {
		const struct pmu_block *block = block_of(tb, kinds, bytes, code);
		if (block == NULL)
			die("not enough memory for a block");
		if (settings.takes_turns)
			qemu_plugin_register_vcpu_tb_exec_cb(tb, enter_in_turn, QEMU_PLUGIN_CB_R_REGS,
							     (void *)block);
		else
			qemu_plugin_register_vcpu_tb_exec_cb(tb, enter, QEMU_PLUGIN_CB_NO_REGS,
							     (void *)block);
		for (size_t i = 0; i < count; i++)
			watch_insn(qemu_plugin_tb_get_insn(tb, i), kinds[i], i == 0, &block->locations[i]);
		note_block(qemu_plugin_tb_get_insn(tb, count - 1), block);
	}
	for (size_t i = 0; i < count; i++)
		marks_watch(qemu_plugin_tb_get_insn(tb, i), kinds[i]);
}

static bool open_pipeline(const char *target)
{
	struct pipeline *pipeline = &settings.window.pipeline;
	const char *message = operations_open(target, settings.cpu, pipeline);

	if (message != NULL) {
		fprintf(stderr, "pmu: cannot model the core %s: %s\n", settings.cpu, message);
		return false;
	}
	if (settings.width > 0)
		pipeline->width = settings.width;
	if (settings.reorder_slots > 0)
		pipeline->window = settings.reorder_slots;
	if (pipeline->window > MAX_WINDOW)
		pipeline->window = MAX_WINDOW;
	return true;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
					   char **argv)
{
	instructions = instruction_set(info->target_name);
	if (instructions == NULL)
		return !pmu_refuse("this guest processor is not supported", info->target_name);
	if (!pmu_settings_read(&settings, argc, argv))
		return 1;
	if (!open_pipeline(info->target_name))
		return 1;
	/* Fail now rather than after minutes of running. */
	if (!interval_begin_files(&settings)) {
		fprintf(stderr, "pmu: cannot write %s: %s\n", settings.out, strerror(errno));
		return 1;
	}
	is_system = info->system_emulation;
	format = is_system ? page_format(info->target_name) : NULL;
	if (settings.takes_turns)
		turns_open("pmu", instructions, (unsigned int)info->system.smp_vcpus);
	notes = qemu_plugin_scoreboard_new(sizeof(struct noted));
	marks_open(id, &(struct interval_calls){register_callbacks, interval_begins, interval_ends},
		   settings.all);
	return 0;
}
