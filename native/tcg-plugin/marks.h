/* The intervals between the guest's start and stop marks, for plugins that count in these alone. */
#ifndef MEPOF_MARKS_H
#define MEPOF_MARKS_H

#include <stdbool.h>

#include "decode.h"
#include "qemu_plugin_api.h"

struct interval_calls {
	/* Once now, and after everything that drops QEMU's translations. */
	void (*registers)(qemu_plugin_id_t id);
	/* All vCPUs stand still. A second start mark begins anew; what was before had no end. */
	void (*begins)(void);
	/* At the stop mark. */
	void (*ends)(void);
};

/* `all`: everything is one interval, which only the plugin itself ends. */
void marks_open(qemu_plugin_id_t id, const struct interval_calls *calls, bool all);
/* What is translated now is of an interval. */
bool marks_within(void);
/* To be called for each instruction, after its other callbacks. */
void marks_watch(struct qemu_plugin_insn *insn, enum insn_kind kind);

#endif
