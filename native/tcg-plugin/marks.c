#include "marks.h"

#include <stdatomic.h>

static qemu_plugin_id_t plugin;
static struct interval_calls calls;
static bool all;
static bool within;
/*
 * The state that a mark requested. It takes effect when no vCPU runs. A mark that closely follows
 * another finds the reset under way, and changes its outcome.
 */
static atomic_bool wanted;
/* The interval has ended; what is counted until the reset takes effect does not count. */
static atomic_bool ended;

void marks_open(qemu_plugin_id_t id, const struct interval_calls *to_call, bool everything)
{
	plugin = id;
	calls = *to_call;
	within = wanted = all = everything;
	calls.registers(id);
}

bool marks_within(void)
{
	return within;
}

/* Runs after a mark, with all vCPUs stopped and all translations dropped. */
static void turn(qemu_plugin_id_t id)
{
	if (wanted)
		calls.begins();
	within = wanted;
	ended = false;
	calls.registers(id);
}

static void start_mark(unsigned int index, void *unused)
{
	(void)index;
	(void)unused;
	wanted = true;
	qemu_plugin_reset(plugin, turn);
}

static void stop_mark(unsigned int index, void *unused)
{
	(void)index;
	(void)unused;
	wanted = false;
	if (!within || atomic_exchange(&ended, true))
		return;
	calls.ends();
	qemu_plugin_reset(plugin, turn);
}

void marks_watch(struct qemu_plugin_insn *insn, enum insn_kind kind)
{
	if (all)
		return;
	if (kind == INSN_START_MARK)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, start_mark, QEMU_PLUGIN_CB_NO_REGS, NULL);
	else if (kind == INSN_STOP_MARK)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, stop_mark, QEMU_PLUGIN_CB_NO_REGS, NULL);
}
