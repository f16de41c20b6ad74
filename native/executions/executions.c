/*
 * QEMU TCG plugin: how often each translated block of the kernel's code is executed between the
 * guest's start and stop marks.
 *
 *   -plugin executions.so,out=FILE
 *
 * The file has the format of pmu.so's `where` (docs/pmu.md) without events and slices: a line of
 * JSON with the names of the events, of which there are none, then a line for each interval, whose
 * sites are [start, end, instructions, executions] of a block. A block that is translated again
 * may have several sites.
 *
 * All vCPUs must run in one thread, as with -icount. A block that an exception leaves early counts
 * as whole. With -icount, TCG executes one iteration of a REP string instruction and jumps to it
 * again; these visits do not count, except the one after an interrupt.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tcg-plugin/decode.h"
#include "../tcg-plugin/marks.h"
#include "../tcg-plugin/qemu_plugin_api.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

struct site {
	struct site *older;
	uint64_t start;
	uint64_t end;
	uint64_t repeat; /* address of the REP that ends the block; 0 without one */
	uint64_t instructions;
	uint64_t executions;
};

static const struct instruction_set *instructions;
static struct site *sites;
/* Address of the REP that the last kernel block ended with, or 0. */
static uint64_t repeating;
static FILE *out;
static const char *out_path;

/* A run that loses its counts must not look like one that counted nothing. */
static void die(void)
{
	fprintf(stderr, "executions: cannot write %s: %s\n", out_path, strerror(errno));
	exit(1);
}

static void block_begins(unsigned int index, void *what)
{
	struct site *site = what;

	(void)index;
	site->executions += site->start != repeating;
	repeating = site->repeat;
}

static enum insn_kind kind_of(const struct qemu_plugin_insn *insn)
{
	uint8_t bytes[MAX_INSN_BYTES] = {0};

	return instructions->kind(bytes, qemu_plugin_insn_data(insn, bytes, sizeof(bytes)));
}

static void watch(struct qemu_plugin_tb *tb)
{
	const size_t count = qemu_plugin_tb_n_insns(tb);
	const struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, count - 1);
	const uint64_t address = qemu_plugin_insn_vaddr(last);
	struct site *site = malloc(sizeof(*site));

	if (site == NULL) {
		fputs("executions: not enough memory\n", stderr);
		exit(1);
	}
	*site = (struct site){
		.older = sites,
		.start = qemu_plugin_tb_vaddr(tb),
		.end = address + qemu_plugin_insn_size(last),
		.repeat = kind_of(last) == INSN_REPEAT ? address : 0,
		.instructions = count,
	};
	sites = site;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, block_begins, QEMU_PLUGIN_CB_NO_REGS, site);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	const size_t count = qemu_plugin_tb_n_insns(tb);

	(void)id;
	if (marks_within() && is_kernel(instructions, qemu_plugin_tb_vaddr(tb)))
		watch(tb);
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		marks_watch(insn, kind_of(insn));
	}
}

static void registers(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
}

/* All translations are dropped, so nothing refers to a site. */
static void interval_begins(void)
{
	while (sites != NULL) {
		struct site *older = sites->older;
		free(sites);
		sites = older;
	}
	repeating = 0;
}

static void interval_ends(void)
{
	const char *separator = "";

	fputs("{\"sites\":[", out);
	for (const struct site *site = sites; site != NULL; site = site->older) {
		if (site->executions == 0)
			continue;
		fprintf(out, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", separator,
			site->start, site->end, site->instructions, site->executions);
		separator = ",";
	}
	fputs("],\"slices\":[]}\n", out);
	if (fflush(out) != 0)
		die();
}

static int refuse(const char *message, const char *word)
{
	fprintf(stderr, "executions: %s%s%s (usage: -plugin executions.so,out=FILE)\n", message,
		word ? ": " : "", word ? word : "");
	return 1;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
					   char **argv)
{
	instructions = instruction_set(info->target_name);
	if (instructions == NULL)
		return refuse("this guest processor is not supported", info->target_name);
	if (argc != 1 || strncmp(argv[0], "out=", 4) != 0 || argv[0][4] == '\0')
		return refuse("out=FILE must be the only argument", NULL);
	out_path = argv[0] + 4;
	out = fopen(out_path, "w");
	if (out == NULL || fputs("{\"version\":1,\"events\":[]}\n", out) < 0 || fflush(out) != 0)
		die();
	marks_open(id, &(struct interval_calls){registers, interval_begins, interval_ends}, false);
	return 0;
}
