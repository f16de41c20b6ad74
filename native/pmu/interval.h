/* An interval: the state of a vCPU while it runs, and the files that are written after it. */
#ifndef MEPOF_PMU_INTERVAL_H
#define MEPOF_PMU_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "../tcg-plugin/repeats.h"
#include "blocks.h"
#include "model.h"
#include "pages.h"
#include "settings.h"
#include "window.h"

enum { USER, KERNEL, SIDES, MAX_ACCESSES = 2048 };

/* Instructions, and of these REP string instructions that began. */
struct executed {
	uint64_t instructions[SIDES];
	uint64_t repeats[SIDES];
};

struct vcpu {
	struct model model;
	struct window window;
	/* The block that is being executed, and its accesses so far. */
	const struct pmu_block *running;
	/* The last one that was entered, or NULL. */
	const struct pmu_block *entered;
	/* Where the last interrupt or exception led, or 0. */
	uint64_t handler;
	struct access accesses[MAX_ACCESSES];
	uint32_t access_count;
	uint64_t totals[SIDES][EVENTS];
	struct repeats repeats[SIDES];
	/* The address space of user code, as the high bits of keys. */
	uint64_t space;
	/* Where vCPUs take turns: `space` and `tables` have been read in this interval. */
	bool has_space;
	struct page_tables tables;
	/* The last small page of user code with its space, and the key of the page that it is in. */
	uint64_t last_user_code, last_user_key;
	/* Page of the last access to data. */
	uint64_t last_page;
	/* Last lines that the current REP loaded and stored. */
	uint64_t last_repeat_line[2];
	struct sites sites;
	/* Instructions until the next slice, and the slices so far, as items of a JSON list. */
	int64_t slice_left;
	FILE *slices;
	char *slices_text;
	size_t slices_size;
	bool has_slices;
};

/* NULL when memory is short. */
struct vcpu *vcpu_new(const struct pmu_settings *settings);

/* Begins an interval with an empty model, in the current address space. */
void vcpu_clear(struct vcpu *vcpu, const struct pmu_settings *settings);

/* Both return false when a file cannot be written or memory is short; errno has the cause. */

bool interval_begin_files(const struct pmu_settings *settings);

/*
 * Ends an interval. Rewrites the counts of all intervals atomically, and appends where the events
 * were. `vcpus` has gaps.
 */
bool interval_write(const struct pmu_settings *settings, struct executed executed,
		    struct vcpu *const *vcpus, size_t count);

#endif
