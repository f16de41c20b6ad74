/*
 * QEMU TCG plugin: records every taken branch and fall-through range of the kernel, exactly or as
 * samples of a branch stack, between the guest's start and stop marks (docs/recorder-trace.md).
 *
 *   -plugin record.so,out=FILE[,span=marks|session|all][,sample=PERIOD[,depth=N]]
 *                    [,paths=N][,text=ADDRESS][,buildid=HEX][,cpus=turns]
 *
 * How it detects them: each kernel instruction, when it starts, notes the address after it; each
 * block notes itself. When a block does not begin at the noted address, control was transferred,
 * and only then is the plugin called. The last instruction of the previous block says how:
 *
 * - the block did not reach its last instruction: an exception, and the range ends before the
 *   instruction that raised it;
 * - a branch: taken, unless it is direct and has another target, or execution continues at a
 *   target of events: then an interrupt came just after it;
 * - anything else: an interrupt, or a return from one.
 *
 * The targets of events are learned from certain cases: entries into the kernel from user code, and
 * what follows an instruction that is neither a branch nor a return from an event.
 *
 * With cpus=turns (turns.h) callbacks do all this, on the state of the vCPU that executes: a block may
 * follow one of another vCPU.
 *
 * A REP notes its own address: TCG goes from each iteration to the next, which then does not end
 * the range. The cost is a call at its end, which `repeat_end` identifies.
 *
 * Not exact to the last unit: an exception in the last instruction of a block ends the range after
 * it, not before; a REP that an interrupt ends just as it completes is in no range; a branch before
 * an interrupt that came between two blocks is not counted.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "branch_stack.h"
#include "decode.h"
#include "path_counts.h"
#include "qemu_plugin_api.h"
#include "record_settings.h"
#include "trace_file.h"
#include "turns.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/* One per vCPU. QEMU may move it, so pointers to it do not last. */
struct vcpu {
	/* Address after the last instruction; 0 in user code and at the beginning. */
	uint64_t next;
	/* The last block, a const struct block *. */
	uint64_t block;
	/* Address after the REP that is under way, or 0. */
	uint64_t repeat_end;
	uint64_t repeat_visits;
	/* Of user and kernel code; only for samples. */
	uint64_t instructions;
	/* Inline code accesses the members above, callbacks those below. */
	uint64_t first; /* of the current range */
	uint64_t repeats;
	uint64_t interruptions;
	uint64_t taken;
	uint64_t lost;
	uint64_t since_sample;
	/* The vCPU has passed the stop mark; what it still executes is not recorded. */
	bool stopped;
	struct path_counts paths;
	struct path_counts event_targets;
	struct branch_stack stack;
};

/* `to` of a path whose `last` is not known, only the instruction after it. */
#define BEFORE_LAST 1

static qemu_plugin_id_t plugin;
static struct qemu_plugin_scoreboard *vcpus;
/* With cpus=turns: the state of each vCPU instead, and the number of the one that executes. */
static struct vcpu *turning;
static unsigned int executing;
static const struct instruction_set *instructions;
static struct record_settings settings;
static char *draft_path;
static bool recording;
/* The state that a mark requested. It takes effect when no vCPU runs. */
static atomic_bool wanted;

/* Sums over the finished intervals. */
static struct path_counts branches, ranges;
static uint64_t repeats_left_out, interruptions, taken, lost;

static struct trace_file samples;
static pthread_mutex_t samples_lock = PTHREAD_MUTEX_INITIALIZER;

static qemu_plugin_u64 member(size_t offset)
{
	return (qemu_plugin_u64){vcpus, offset};
}
#define MEMBER(name) member(offsetof(struct vcpu, name))

static struct vcpu *vcpu_at(unsigned int index)
{
	return turning != NULL ? &turning[index] : qemu_plugin_scoreboard_find(vcpus, index);
}

static bool is_sampled(void)
{
	return settings.header.flags & TRACE_SAMPLED;
}

static void die(const char *what)
{
	fprintf(stderr, "record: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Samples */

/* The next branch does not follow from the previous one. */
static void push_gap(struct vcpu *vcpu)
{
	if (is_sampled() && !branch_stack_push_gap(&vcpu->stack, settings.header.depth))
		die("not enough memory for a branch stack");
}

static void sample(unsigned int index, const struct vcpu *vcpu)
{
	struct trace_entry entries[MAX_DEPTH];
	const uint32_t count = branch_stack_read(&vcpu->stack, settings.header.depth, entries);

	pthread_mutex_lock(&samples_lock);
	if (!trace_sample(&samples, vcpu->instructions, entries[0].to, index, entries, count))
		die(settings.out);
	pthread_mutex_unlock(&samples_lock);
}

/* Execution */

static void ran(struct vcpu *vcpu, uint64_t last, uint64_t to)
{
	if (!is_sampled() && !path_counts_add(&vcpu->paths, vcpu->first, last, to, 1))
		vcpu->lost += to > BEFORE_LAST;
}

static void interrupted(struct vcpu *vcpu, uint64_t to)
{
	vcpu->interruptions++;
	if (is_kernel(instructions, to))
		path_counts_add(&vcpu->event_targets, to, 0, 0, 1);
	push_gap(vcpu);
}

static void branched(unsigned int index, struct vcpu *vcpu, uint64_t from, uint64_t to)
{
	vcpu->taken++;
	if (!is_sampled())
		return;
	if (!branch_stack_push(&vcpu->stack, settings.header.depth, from, to))
		die("not enough memory for a branch stack");
	if (++vcpu->since_sample == settings.header.period) {
		vcpu->since_sample = 0;
		sample(index, vcpu);
	}
}

/* An instruction of the block noted its successor, but control did not get there. */
static void stopped_early(struct vcpu *vcpu, const struct block *block)
{
	uint32_t at = 0;

	if (block->leaves == BY_REPEAT && vcpu->next == block->addresses[block->size - 1] &&
	    vcpu->repeat_end != 0)
		at = block->size - 1;
	else
		while (at + 1 < block->size && block->addresses[at + 1] != vcpu->next)
			at++;
	if (at > 0)
		ran(vcpu, block->addresses[at - 1], 0);
	else if (block->addresses[0] != vcpu->first)
		ran(vcpu, block->addresses[0], BEFORE_LAST);
}

static bool is_whole(const struct vcpu *vcpu, const struct block *block)
{
	return block->leaves != BY_REPEAT && vcpu->next == block->addresses[block->size];
}

static const struct block *block_of(const struct vcpu *vcpu)
{
	return (const struct block *)(uintptr_t)vcpu->block;
}

/* The current range ends; `to` may be in user code. */
static void left(unsigned int index, struct vcpu *vcpu, uint64_t to)
{
	const struct block *block = block_of(vcpu);
	const uint64_t last = block->addresses[block->size - 1];

	if (!is_whole(vcpu, block)) {
		stopped_early(vcpu, block);
		interrupted(vcpu, to);
		return;
	}
	switch (block->leaves) {
	case BY_BRANCH:
		if ((block->target != 0 && block->target != to) ||
		    (block->target == 0 && path_counts_get(&vcpu->event_targets, to, 0, 0) > 0)) {
			ran(vcpu, last, 0);
			interrupted(vcpu, to);
		} else {
			ran(vcpu, last, to);
			branched(index, vcpu, last, to);
		}
		break;
	case BY_RETURN:
		ran(vcpu, last, 0);
		push_gap(vcpu);
		break;
	default:
		ran(vcpu, last, 0);
		interrupted(vcpu, to);
	}
}

/* A kernel block begins at another address than the last instruction noted. */
static void transferred_to(unsigned int index, void *address)
{
	struct vcpu *vcpu = vcpu_at(index);
	const uint64_t start = (uintptr_t)address;

	if (vcpu->stopped)
		return;
	if (vcpu->next == 0) {
		/* Without a previous block, recording has just begun. */
		if (vcpu->block != 0)
			path_counts_add(&vcpu->event_targets, start, 0, 0, 1);
		push_gap(vcpu);
	} else if (vcpu->repeat_end == start) {
		vcpu->repeat_end = 0;
		vcpu->repeats++;
		return;
	} else {
		left(index, vcpu, start);
	}
	vcpu->repeat_end = 0;
	vcpu->first = start;
}

/* Recording ends within a range. */
static void end_range(struct vcpu *vcpu)
{
	const struct block *block = block_of(vcpu);

	if (vcpu->next == 0 || vcpu->stopped)
		return;
	if (is_whole(vcpu, block))
		ran(vcpu, block->addresses[block->size - 1], 0);
	else
		stopped_early(vcpu, block);
}

/* A user block begins after a kernel instruction. */
static void left_kernel(unsigned int index, void *address)
{
	struct vcpu *vcpu = vcpu_at(index);

	if (!vcpu->stopped)
		left(index, vcpu, (uintptr_t)address);
	vcpu->next = vcpu->repeat_end = 0;
}

/* The same, where vCPUs take turns: QEMU's index is of the vCPU that translated the code. */

static void kernel_block_begins(unsigned int index, void *what)
{
	const struct block *block = what;

	(void)index;
	executing = turns_vcpu();
	if (vcpu_at(executing)->next != block->addresses[0])
		transferred_to(executing, (void *)(uintptr_t)block->addresses[0]);
	vcpu_at(executing)->block = (uintptr_t)block;
}

static void user_block_begins(unsigned int index, void *address)
{
	(void)index;
	executing = turns_vcpu();
	if (vcpu_at(executing)->next != 0)
		left_kernel(executing, address);
}

static void next_is(unsigned int index, void *address)
{
	(void)index;
	vcpu_at(executing)->next = (uintptr_t)address;
}

static void repeat_visited(unsigned int index, void *end)
{
	struct vcpu *vcpu = vcpu_at(executing);

	(void)index;
	vcpu->repeat_end = (uintptr_t)end;
	vcpu->repeat_visits++;
}

static void executes(unsigned int index, void *count)
{
	(void)index;
	vcpu_at(executing)->instructions += (uintptr_t)count;
}

/* Intervals */

static bool is_event_target(uint64_t address)
{
	for (int i = 0; i < qemu_plugin_num_vcpus(); i++)
		if (path_counts_get(&vcpu_at((unsigned)i)->event_targets, address, 0, 0) > 0)
			return true;
	return false;
}

static void settle_path(const struct path *path, const struct path_counts *known)
{
	uint64_t last = path->last;
	bool is_branch = path->to > BEFORE_LAST;

	if (path->to == BEFORE_LAST)
		last = path_counts_get(known, last, 0, 0);
	if (is_branch && is_event_target(path->to)) {
		/* Counted as an indirect branch before its target was known as one of events. */
		interruptions += path->count;
		taken -= path->count;
		is_branch = false;
	}
	/* A path that ends in no known instruction is not a range. */
	if (last < path->first)
		return;
	if (!path_counts_add(&ranges, path->first, last, 0, path->count) ||
	    (is_branch && !path_counts_add(&branches, last, path->to, 0, path->count)))
		lost += is_branch ? path->count : 0;
}

/* Adds the counts of the vCPUs to those of the finished intervals. */
static void settle(void)
{
	struct path_counts known = blocks_predecessors();

	for (int i = 0; i < qemu_plugin_num_vcpus(); i++)
		end_range(vcpu_at((unsigned)i));
	for (int i = 0; i < qemu_plugin_num_vcpus(); i++) {
		const struct vcpu *vcpu = vcpu_at((unsigned)i);
		repeats_left_out += vcpu->repeat_visits - vcpu->repeats;
		interruptions += vcpu->interruptions;
		taken += vcpu->taken;
		lost += vcpu->lost;
		for (size_t at = 0; at < vcpu->paths.capacity; at++)
			if (vcpu->paths.slots[at].count > 0)
				settle_path(&vcpu->paths.slots[at], &known);
	}
	path_counts_free(&known);
}

static void clear_vcpus(void)
{
	for (int i = 0; i < qemu_plugin_num_vcpus(); i++) {
		struct vcpu *vcpu = vcpu_at((unsigned)i);
		path_counts_free(&vcpu->paths);
		vcpu->next = vcpu->block = vcpu->repeat_end = vcpu->first = 0;
		vcpu->repeat_visits = vcpu->repeats = vcpu->interruptions = 0;
		vcpu->taken = vcpu->lost = 0;
		vcpu->stack.filled = 0;
		vcpu->stopped = false;
	}
	blocks_forget();
}

static bool write_counters(struct trace_file *trace)
{
	const uint64_t pairs[][2] = {
		{TRACE_REPEATS, repeats_left_out},
		{TRACE_INTERRUPTIONS, interruptions},
		{TRACE_BRANCHES_LOST, lost},
		{TRACE_TAKEN, taken},
	};
	return trace_counters(trace, pairs, sizeof(pairs) / sizeof(*pairs));
}

static struct path_counts sorted_copy(const struct path_counts *counts)
{
	struct path_counts copy = *counts;

	copy.slots = malloc(counts->capacity * sizeof(*copy.slots) + 1);
	if (copy.slots == NULL)
		die("not enough memory to sort counts");
	if (counts->capacity > 0)
		memcpy(copy.slots, counts->slots, counts->capacity * sizeof(*copy.slots));
	path_counts_sort(&copy);
	return copy;
}

/* Replaces the file atomically: readers may look while QEMU runs, and QEMU may be killed. */
static void write_exact(void)
{
	struct trace_file trace;
	struct path_counts sorted_branches = sorted_copy(&branches);
	struct path_counts sorted_ranges = sorted_copy(&ranges);

	if (!trace_open(&trace, draft_path, &settings.header) ||
	    !trace_pairs(&trace, TRACE_BRANCHES, &sorted_branches) ||
	    !trace_pairs(&trace, TRACE_RANGES, &sorted_ranges) || !write_counters(&trace) ||
	    !trace_close(&trace) || rename(draft_path, settings.out) != 0)
		die(settings.out);
	path_counts_free(&sorted_branches);
	path_counts_free(&sorted_ranges);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
static void at_exit(qemu_plugin_id_t id, void *userdata);

static void register_callbacks(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
}

/*
 * Runs with all vCPUs stopped and all translations dropped, after a mark or because there are many
 * blocks. An interval that a second start mark ends counts like any other.
 */
static void turn(qemu_plugin_id_t id)
{
	const bool was_recording = recording;

	if (was_recording)
		settle();
	clear_vcpus();
	recording = wanted;
	if (was_recording && !recording && !is_sampled())
		write_exact();
	register_callbacks(id);
}

static void start_mark(unsigned int index, void *unused)
{
	(void)index;
	(void)unused;
	wanted = true;
	qemu_plugin_reset(plugin, turn);
}

static void stop_mark(unsigned int index, void *address)
{
	if (!recording)
		return;
	struct vcpu *vcpu = vcpu_at(turning != NULL ? executing : index);
	/* The mark is the last instruction that counts, and may be in kernel code. */
	if (vcpu->next != 0 && !vcpu->stopped)
		ran(vcpu, (uintptr_t)address, 0);
	vcpu->stopped = true;
	wanted = false;
	qemu_plugin_reset(plugin, turn);
}

static void at_exit(qemu_plugin_id_t id, void *userdata)
{
	(void)id;
	(void)userdata;
	/* The end of the run ends the current range. */
	if (recording)
		settle();
	if (!is_sampled())
		write_exact();
	else if (!write_counters(&samples) || !trace_close(&samples))
		die(settings.out);
}

/* Translation */

static void watch_for_marks(struct qemu_plugin_insn *insn)
{
	const bool session = settings.span == SPAN_SESSION;
	uint8_t bytes[MAX_INSN_BYTES];

	if (settings.span == SPAN_ALL)
		return;
	const enum insn_kind kind =
		instructions->kind(bytes, qemu_plugin_insn_data(insn, bytes, sizeof(bytes)));
	if (kind == (session ? INSN_SESSION_START_MARK : INSN_START_MARK))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, start_mark, QEMU_PLUGIN_CB_NO_REGS, NULL);
	else if (kind == (session ? INSN_SESSION_STOP_MARK : INSN_STOP_MARK))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, stop_mark, QEMU_PLUGIN_CB_NO_REGS,
						       (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn));
}

static void call_at_block(struct qemu_plugin_tb *tb, qemu_plugin_vcpu_udata_cb_t call,
			  enum qemu_plugin_cb_flags flags, uint64_t what)
{
	qemu_plugin_register_vcpu_tb_exec_cb(tb, call, flags, (void *)(uintptr_t)what);
}

static void call_at_insn(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_udata_cb_t call,
			 uint64_t what)
{
	qemu_plugin_register_vcpu_insn_exec_cb(insn, call, QEMU_PLUGIN_CB_NO_REGS,
					       (void *)(uintptr_t)what);
}

static void watch_user_block(struct qemu_plugin_tb *tb)
{
	const uint64_t start = qemu_plugin_tb_vaddr(tb);

	if (turning != NULL)
		call_at_block(tb, user_block_begins, QEMU_PLUGIN_CB_R_REGS, start);
	else
		qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, left_kernel, QEMU_PLUGIN_CB_NO_REGS,
							  QEMU_PLUGIN_COND_NE, MEMBER(next), 0,
							  (void *)(uintptr_t)start);
}

/* The transfer is checked first, then the block and its instructions are noted. */
static void watch_kernel_block(struct qemu_plugin_tb *tb, const struct block *block)
{
	const uint64_t start = qemu_plugin_tb_vaddr(tb);

	if (turning != NULL) {
		call_at_block(tb, kernel_block_begins, QEMU_PLUGIN_CB_R_REGS, (uintptr_t)block);
		return;
	}
	qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, transferred_to, QEMU_PLUGIN_CB_NO_REGS,
						  QEMU_PLUGIN_COND_NE, MEMBER(next), start,
						  (void *)(uintptr_t)start);
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_STORE_U64,
							  MEMBER(block), (uintptr_t)block);
}

static void note(struct qemu_plugin_insn *insn, qemu_plugin_u64 where, uint64_t what)
{
	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_STORE_U64, where,
							    what);
}

/* Notes the address after the instruction. */
static void watch_kernel_insn(struct qemu_plugin_insn *insn, enum insn_kind kind, uint64_t next)
{
	const bool repeats = kind == INSN_REPEAT;
	const uint64_t noted = repeats ? qemu_plugin_insn_vaddr(insn) : next;

	if (turning != NULL) {
		call_at_insn(insn, next_is, noted);
		if (repeats)
			call_at_insn(insn, repeat_visited, next);
		return;
	}
	note(insn, MEMBER(next), noted);
	if (!repeats)
		return;
	note(insn, MEMBER(repeat_end), next);
	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64,
							    MEMBER(repeat_visits), 1);
}

/* After the calls that say which vCPU executes. */
static void watch_time(struct qemu_plugin_tb *tb)
{
	const size_t count = qemu_plugin_tb_n_insns(tb);

	if (turning != NULL)
		call_at_block(tb, executes, QEMU_PLUGIN_CB_NO_REGS, count);
	else
		qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64,
								  MEMBER(instructions), count);
}

static enum leaves leaves_of(enum insn_kind last)
{
	switch (last) {
	case INSN_CONDITIONAL:
	case INSN_UNCONDITIONAL:
		return BY_BRANCH;
	case INSN_EVENT_RETURN:
		return BY_RETURN;
	case INSN_REPEAT:
		return BY_REPEAT;
	default:
		return BY_EVENT;
	}
}

static void watch_kernel(struct qemu_plugin_tb *tb)
{
	const size_t size = qemu_plugin_tb_n_insns(tb);
	uint64_t addresses[MAX_BLOCK_INSNS + 1];
	enum insn_kind kind = INSN_PLAIN;
	uint64_t target = 0;

	if (size > MAX_BLOCK_INSNS)
		die("a block has more instructions than QEMU allows");
	for (size_t i = 0; i < size; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t bytes[MAX_INSN_BYTES] = {0};
		const size_t length = qemu_plugin_insn_data(insn, bytes, sizeof(bytes));
		addresses[i] = qemu_plugin_insn_vaddr(insn);
		addresses[i + 1] = addresses[i] + length;
		kind = instructions->kind(bytes, length);
		target = instructions->direct_target(bytes, length, addresses[i + 1]);
		watch_kernel_insn(insn, kind, addresses[i + 1]);
	}
	const enum leaves leaves = leaves_of(kind);
	const struct block *block =
		block_like(leaves, leaves == BY_BRANCH ? target : 0, addresses, (uint32_t)size);
	if (block == NULL)
		die("not enough memory for a block");
	watch_kernel_block(tb, block);
	/* The reset is asynchronous: a few more blocks may come first. */
	if (blocks_are_many())
		qemu_plugin_reset(plugin, turn);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	const size_t count = qemu_plugin_tb_n_insns(tb);

	(void)id;
	if (recording && is_kernel(instructions, qemu_plugin_tb_vaddr(tb)))
		watch_kernel(tb);
	else if (recording)
		watch_user_block(tb);
	if (recording && is_sampled())
		watch_time(tb);
	for (size_t i = 0; i < count; i++)
		watch_for_marks(qemu_plugin_tb_get_insn(tb, i));
}

/* Installation */

static void take_turns(unsigned int count)
{
	turning = calloc(count, sizeof(*turning));
	if (turning == NULL)
		die("not enough memory for the vCPUs");
	turns_open("record", instructions, count);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
					   char **argv)
{
	instructions = instruction_set(info->target_name);
	if (instructions == NULL) {
		record_refuse("this guest processor is not supported", info->target_name);
		return 1;
	}
	if (!record_settings_read(&settings, argc, argv))
		return 1;
	settings.header.machine = instructions->elf_machine;
	path_counts_limit(settings.paths);
	settings.header.vcpus = (uint32_t)info->system.smp_vcpus;
	draft_path = malloc(strlen(settings.out) + sizeof(".draft"));
	if (draft_path == NULL)
		die("not enough memory for a name");
	strcpy(draft_path, settings.out);
	strcat(draft_path, ".draft");
	plugin = id;
	vcpus = qemu_plugin_scoreboard_new(sizeof(struct vcpu));
	if (settings.takes_turns)
		take_turns(settings.header.vcpus);
	recording = wanted = settings.span == SPAN_ALL;
	/* Fail now rather than after minutes of running. */
	if (!is_sampled())
		write_exact();
	else if (!trace_open(&samples, settings.out, &settings.header))
		die(settings.out);
	register_callbacks(id);
	return 0;
}
