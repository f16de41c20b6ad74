#include "marks.h"

#include <stdatomic.h>

static qemu_plugin_id_t plugin;
static struct interval_calls calls;
static bool all;
static bool within;
/* What a mark asked for: it takes effect when no vCPU runs. One that follows another closely
 * finds that under way, and changes what it leads to. */
static atomic_bool wanted;
/* The interval has ended, and what is counted until that takes effect is of none. */
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

/* Runs with all vCPUs stopped and no translation left, because of a mark. */
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
