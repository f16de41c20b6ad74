/*
 * The intervals between the guest's start and stop marks, for plugins that count only within them.
 */
#ifndef MEPOF_INTERVAL_MARKS_H
#define MEPOF_INTERVAL_MARKS_H

#include <stdbool.h>

#include "decode.h"
#include "qemu_plugin_api.h"

struct interval_calls {
	/* Called once at the start, and after every reset of QEMU's translations. */
	void (*registers)(qemu_plugin_id_t id);
	/* All vCPUs are stopped. A second start mark restarts the interval. */
	void (*begins)(void);
	/* At the stop mark. */
	void (*ends)(void);
};

/* With `all`, everything is one interval, which only the plugin itself ends. */
void marks_open(qemu_plugin_id_t id, const struct interval_calls *calls, bool all);
/* Whether code that is translated now is within an interval. */
bool marks_within(void);
/* Call for each instruction, after its other callbacks are registered. */
void marks_watch(struct qemu_plugin_insn *insn, enum insn_kind kind);

#endif
