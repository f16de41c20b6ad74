/*
 * QEMU TCG plugin: counts instructions and taken branches of kernel and user code between the
 * guest's start and stop marks.
 *
 *   -plugin count.so,out=FILE[,cpus=turns]
 *
 * Outside the marks the guest runs uninstrumented: only mark instructions have a callback. A start
 * mark makes QEMU drop its translations, and the new ones count; a stop mark takes the counts and
 * drops the translations again. So counting begins with the first block after that of the start
 * mark (a few user instructions later) and ends exactly at the stop mark. No kernel instruction is
 * missed.
 *
 * Counting is inline except where noted:
 *
 * - Instructions: each adds one when it starts. One that faults and is executed again counts
 *   again.
 * - Taken branches: a branch adds one. A conditional branch also notes its fall-through address. A
 *   block that starts at the noted address subtracts the one again (a callback), because control
 *   fell through. Every block clears the note. An interrupt between a branch that is not taken and
 *   the next instruction hides the fall-through, and the branch counts as taken: about one in
 *   100,000.
 * - REP string instructions: with -icount, TCG executes one iteration and jumps to the same
 *   instruction, which then is the first of its block. There, an instruction counts (in a callback)
 *   only if it is not already under way. Its end is detected like a fall-through, and interrupts
 *   between iterations do no harm unless their handler uses REP itself. What they do is counted as
 *   well, by their accesses: iterations, and bytes stored or, by those that do not store, read.
 *
 * With cpus=turns (turns.h) callbacks do the same work, on the state of the vCPU that executes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "marks.h"
#include "qemu_plugin_api.h"
#include "repeats.h"
#include "turns.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

enum { USER, KERNEL };

struct counts {
	uint64_t instructions[2];
	uint64_t taken[2];
	struct repeats repeats[2];
};

/* One per vCPU. Zero is not an address of interest, so it means none. */
struct vcpu {
	struct counts counts;
	/* The address after the branch or REP that ended the last block. */
	uint64_t fall_through;
	/* The REP under way, and the instruction after it. */
	uint64_t repeat;
	uint64_t repeat_end;
};

/* What an instruction does, for its callback. */
struct insn {
	struct insn *older;
	uint64_t address;
	uint64_t next;
	enum insn_kind kind;
	bool first;
	struct repeat repeat;
};

static const struct instruction_set *instructions;
static struct qemu_plugin_scoreboard *vcpus;
/* With cpus=turns: the vCPUs, the one that executes, and the instructions that are translated. */
static bool takes_turns;
static struct vcpu turning[MAX_TURNS];
static struct vcpu *executing = turning;
static struct insn *insns;
static const char *out_path;
static char *draft_path;
static struct counts *intervals;
static size_t interval_count;

static qemu_plugin_u64 member(size_t offset)
{
	return (qemu_plugin_u64){vcpus, offset};
}
#define MEMBER(name) member(offsetof(struct vcpu, name))

static int side_of(uint64_t address)
{
	return is_kernel(instructions, address) ? KERNEL : USER;
}

static qemu_plugin_u64 instructions_of(uint64_t address)
{
	return side_of(address) == KERNEL ? MEMBER(counts.instructions[KERNEL])
					  : MEMBER(counts.instructions[USER]);
}

static qemu_plugin_u64 taken_of(uint64_t address)
{
	return side_of(address) == KERNEL ? MEMBER(counts.taken[KERNEL]) : MEMBER(counts.taken[USER]);
}

/* Replaces the file atomically: readers may look while QEMU runs, and QEMU may be killed. */
static bool write_out(void)
{
	FILE *file = fopen(draft_path, "w");

	if (file == NULL)
		return false;
	fputs("{\"version\":1,\"intervals\":[", file);
	for (size_t i = 0; i < interval_count; i++) {
		const struct counts *c = &intervals[i];
		fprintf(file,
			"%s\n{\"kernel_instructions\":%" PRIu64 ",\"user_instructions\":%" PRIu64
			",\"kernel_taken_branches\":%" PRIu64 ",\"user_taken_branches\":%" PRIu64,
			i ? "," : "", c->instructions[KERNEL], c->instructions[USER], c->taken[KERNEL],
			c->taken[USER]);
		repeats_print(file, "kernel", &c->repeats[KERNEL]);
		repeats_print(file, "user", &c->repeats[USER]);
		fputc('}', file);
	}
	fputs("]}\n", file);
	const bool sound = !ferror(file);
	return fclose(file) == 0 && sound && rename(draft_path, out_path) == 0;
}

/* A run that loses its counts must not look like one that counted nothing. */
static void write_out_or_die(void)
{
	if (write_out())
		return;
	fprintf(stderr, "count: cannot write %s: %s\n", out_path, strerror(errno));
	exit(1);
}

static struct vcpu *vcpu_at(unsigned int index)
{
	if (takes_turns)
		return executing;
	return qemu_plugin_scoreboard_find(vcpus, index);
}

static void fell_through(unsigned int index, void *address)
{
	struct vcpu *vcpu = vcpu_at(index);
	const uint64_t here = (uintptr_t)address;

	if (vcpu->repeat_end == here)
		vcpu->repeat = vcpu->repeat_end = 0;
	else
		vcpu->counts.taken[side_of(here)]--;
}

static void repeat_begins(unsigned int index, void *address)
{
	struct counts *counts = &vcpu_at(index)->counts;
	const int side = side_of((uintptr_t)address);

	counts->instructions[side]++;
	counts->repeats[side].begun++;
}

static void repeat_accesses(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address,
			    void *what)
{
	const struct insn *insn = what;
	struct repeats *repeats = &executing->counts.repeats[side_of(insn->address)];

	(void)index;
	(void)info;
	(void)address;
	repeats->half_iterations += 2u / insn->repeat.accesses;
	repeats->half_bytes += 2u / insn->repeat.accesses * insn->repeat.unit;
}

static void block_begins(unsigned int index, void *address)
{
	executing = &turning[turns_vcpu()];
	if (executing->fall_through == (uintptr_t)address)
		fell_through(index, address);
	executing->fall_through = 0;
}

static void insn_begins(unsigned int index, void *what)
{
	const struct insn *insn = what;
	const int side = side_of(insn->address);

	(void)index;
	if (insn->kind != INSN_REPEAT || !insn->first || executing->repeat != insn->address) {
		executing->counts.instructions[side]++;
		executing->counts.repeats[side].begun += insn->kind == INSN_REPEAT;
	}
	if (insn->kind == INSN_REPEAT) {
		executing->repeat = insn->address;
		executing->repeat_end = insn->next;
	}
	if (insn->kind == INSN_CONDITIONAL || insn->kind == INSN_UNCONDITIONAL)
		executing->counts.taken[side]++;
	if (insn->kind == INSN_CONDITIONAL || insn->kind == INSN_REPEAT)
		executing->fall_through = insn->next;
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
static void at_exit(qemu_plugin_id_t id, void *userdata);

static void register_callbacks(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
}

/* Called when there are no translations. */
static void forget_insns(void)
{
	while (insns != NULL) {
		struct insn *older = insns->older;
		free(insns);
		insns = older;
	}
}

static void interval_begins(void)
{
	forget_insns();
	memset(turning, 0, sizeof(turning));
	for (int i = 0; !takes_turns && i < qemu_plugin_num_vcpus(); i++)
		memset(vcpu_at((unsigned)i), 0, sizeof(struct vcpu));
}

/* All counts are 64-bit numbers. */
union sum {
	struct counts counts;
	uint64_t each[sizeof(struct counts) / sizeof(uint64_t)];
};

static struct counts counted(void)
{
	union sum sum = {.each = {0}};

	for (size_t number = 0; number < sizeof(sum) / sizeof(uint64_t); number++) {
		const size_t offset = number * sizeof(uint64_t);
		for (size_t i = 0; takes_turns && i < MAX_TURNS; i++)
			sum.each[number] += ((const union sum *)&turning[i].counts)->each[number];
		if (!takes_turns)
			sum.each[number] = qemu_plugin_u64_sum(
				member(offsetof(struct vcpu, counts) + offset));
	}
	return sum.counts;
}

static void interval_ends(void)
{
	struct counts *grown = realloc(intervals, (interval_count + 1) * sizeof(*intervals));
	if (grown == NULL) {
		fputs("count: not enough memory\n", stderr);
		exit(1);
	}
	intervals = grown;
	intervals[interval_count++] = counted();
	write_out_or_die();
}

static enum insn_kind kind_of(const struct qemu_plugin_insn *insn)
{
	uint8_t bytes[MAX_INSN_BYTES];

	return instructions->kind(bytes, qemu_plugin_insn_data(insn, bytes, sizeof(bytes)));
}

static struct repeat repeat_of(const struct qemu_plugin_insn *insn)
{
	uint8_t bytes[MAX_INSN_BYTES];

	return instructions->repeat(bytes, qemu_plugin_insn_data(insn, bytes, sizeof(bytes)));
}

static enum qemu_plugin_mem_rw counted_accesses(struct repeat repeat)
{
	return repeat.stores ? QEMU_PLUGIN_MEM_W : QEMU_PLUGIN_MEM_R;
}

static void count_repeat(struct qemu_plugin_insn *insn, int side)
{
	const struct repeat repeat = repeat_of(insn);
	const uint64_t halves = 2u / repeat.accesses;

	qemu_plugin_register_vcpu_mem_inline_per_vcpu(
		insn, counted_accesses(repeat), QEMU_PLUGIN_INLINE_ADD_U64,
		MEMBER(counts.repeats[side].half_iterations), halves);
	qemu_plugin_register_vcpu_mem_inline_per_vcpu(
		insn, counted_accesses(repeat), QEMU_PLUGIN_INLINE_ADD_U64,
		MEMBER(counts.repeats[side].half_bytes), halves * repeat.unit);
}

static void count_insn(struct qemu_plugin_insn *insn, enum insn_kind kind, bool first)
{
	const uint64_t address = qemu_plugin_insn_vaddr(insn);
	const uint64_t next = address + qemu_plugin_insn_size(insn);

	/* Only the first instruction of a block can be a REP that is under way. */
	if (kind == INSN_REPEAT && first)
		qemu_plugin_register_vcpu_insn_exec_cond_cb(insn, repeat_begins, QEMU_PLUGIN_CB_NO_REGS,
							    QEMU_PLUGIN_COND_NE, MEMBER(repeat), address,
							    (void *)(uintptr_t)address);
	else
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
			insn, QEMU_PLUGIN_INLINE_ADD_U64, instructions_of(address), 1);
	if (kind == INSN_REPEAT) {
		if (!first)
			qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
				insn, QEMU_PLUGIN_INLINE_ADD_U64,
				MEMBER(counts.repeats[side_of(address)].begun), 1);
		count_repeat(insn, side_of(address));
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
			insn, QEMU_PLUGIN_INLINE_STORE_U64, MEMBER(repeat), address);
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
			insn, QEMU_PLUGIN_INLINE_STORE_U64, MEMBER(repeat_end), next);
	}
	if (kind == INSN_CONDITIONAL || kind == INSN_UNCONDITIONAL)
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64,
								    taken_of(address), 1);
	if (kind == INSN_CONDITIONAL || kind == INSN_REPEAT)
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
			insn, QEMU_PLUGIN_INLINE_STORE_U64, MEMBER(fall_through), next);
}

static void call_at_insn(struct qemu_plugin_insn *insn, enum insn_kind kind, bool first)
{
	struct insn *made = malloc(sizeof(*made));

	if (made == NULL) {
		fputs("count: not enough memory\n", stderr);
		exit(1);
	}
	const uint64_t address = qemu_plugin_insn_vaddr(insn);
	*made = (struct insn){insns, address, address + qemu_plugin_insn_size(insn), kind, first, {0}};
	insns = made;
	if (kind == INSN_REPEAT) {
		made->repeat = repeat_of(insn);
		qemu_plugin_register_vcpu_mem_cb(insn, repeat_accesses, QEMU_PLUGIN_CB_NO_REGS,
						 counted_accesses(made->repeat), made);
	}
	qemu_plugin_register_vcpu_insn_exec_cb(insn, insn_begins, QEMU_PLUGIN_CB_NO_REGS, made);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	const uint64_t start = qemu_plugin_tb_vaddr(tb);
	const size_t count = qemu_plugin_tb_n_insns(tb);

	(void)id;
	if (marks_within() && takes_turns) {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, block_begins, QEMU_PLUGIN_CB_R_REGS,
						     (void *)(uintptr_t)start);
	} else if (marks_within()) {
		qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, fell_through, QEMU_PLUGIN_CB_NO_REGS,
							  QEMU_PLUGIN_COND_EQ, MEMBER(fall_through),
							  start, (void *)(uintptr_t)start);
		qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_STORE_U64,
								  MEMBER(fall_through), 0);
	}
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const enum insn_kind kind = kind_of(insn);
		if (marks_within() && takes_turns)
			call_at_insn(insn, kind, i == 0);
		else if (marks_within())
			count_insn(insn, kind, i == 0);
		marks_watch(insn, kind);
	}
}

static void at_exit(qemu_plugin_id_t id, void *userdata)
{
	(void)id;
	(void)userdata;
	write_out();
}

static int refuse(const char *message, const char *word)
{
	fprintf(stderr, "count: %s%s%s (usage: -plugin count.so,out=FILE[,cpus=turns])\n", message,
		word ? ": " : "", word ? word : "");
	return 1;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
					   char **argv)
{
	instructions = instruction_set(info->target_name);
	if (instructions == NULL)
		return refuse("this guest processor is not supported", info->target_name);
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "cpus=turns") == 0) {
			takes_turns = true;
			continue;
		}
		if (strncmp(argv[i], "out=", 4) != 0)
			return refuse("unknown argument", argv[i]);
		out_path = argv[i] + 4;
	}
	if (out_path == NULL || *out_path == '\0')
		return refuse("out=FILE is missing", NULL);
	draft_path = malloc(strlen(out_path) + sizeof(".draft"));
	if (draft_path == NULL)
		return refuse("not enough memory", NULL);
	strcpy(draft_path, out_path);
	strcat(draft_path, ".draft");
	/* Fail now rather than after minutes of running. */
	if (!write_out()) {
		fprintf(stderr, "count: cannot write %s: %s\n", out_path, strerror(errno));
		return 1;
	}
	vcpus = qemu_plugin_scoreboard_new(sizeof(struct vcpu));
	if (takes_turns)
		turns_open("count", instructions, (unsigned int)info->system.smp_vcpus);
	marks_open(id, &(struct interval_calls){register_callbacks, interval_begins, interval_ends}, false);
	return 0;
}
