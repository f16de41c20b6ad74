/* What an interval gave: a vCPU's state while it runs, and the files that are written after it. */
#ifndef MEPOF_PMU_INTERVAL_H
#define MEPOF_PMU_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "blocks.h"
#include "model.h"
#include "settings.h"
#include "window.h"

enum { USER, KERNEL, SIDES, MOST_ACCESSES = 2048 };

struct vcpu {
	struct model model;
	struct window window;
	/* The block that is being executed, and its accesses until now. */
	const struct pmu_block *running;
	struct access accesses[MOST_ACCESSES];
	uint32_t access_count;
	uint64_t totals[SIDES][EVENTS];
	/* The address space of user code, as the high bits of keys. */
	uint64_t space;
	/* Of the last access to data. */
	uint64_t last_page;
	/* Of the REP under way, what it loads and what it stores. */
	uint64_t last_repeat_line[2];
	struct sites sites;
	/* Instructions until the next slice, and the slices until now, as items of a JSON list. */
	int64_t slice_left;
	FILE *slices;
	char *slices_text;
	size_t slices_size;
	bool has_slices;
};

/* NULL when memory is short. */
struct vcpu *vcpu_new(const struct pmu_settings *settings);

/* An interval begins: with an empty model, in the address space that it is in. */
void vcpu_clear(struct vcpu *vcpu, const struct pmu_settings *settings);

/* Both are false when a file cannot be written, or memory is short; errno says why. */

bool interval_begin_files(const struct pmu_settings *settings);

/*
 * An interval has ended; `executed` are its instructions. The counts of all intervals are written
 * anew, whole or not at all; where the events were is appended. `vcpus` has holes.
 */
bool interval_write(const struct pmu_settings *settings, const uint64_t executed[SIDES],
		    struct vcpu *const *vcpus, size_t count);

#endif
