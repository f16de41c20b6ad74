/* The arguments of the plugin. */
#ifndef MEPOF_PMU_SETTINGS_H
#define MEPOF_PMU_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "crossing.h"
#include "model.h"
#include "window.h"

struct pmu_settings {
	const char *out;
	const char *where; /* NULL: locations are not wanted */
	bool all;	   /* from the beginning to the end, rather than between marks */
	bool takes_turns;  /* the vCPUs do, in one thread */
	/*
	 * Base-2 logarithms of page sizes: of the kernel's text, and of its data except what is
	 * mapped with small pages. User code and data have pages of 4 KiB.
	 */
	uint32_t kernel_text_page, kernel_data_page;
	uint32_t slice; /* approximate number of instructions per row of the heatmap */
	const char *cpu; /* the core's name in LLVM */
	uint32_t width, reorder_slots; /* instead of LLVM's; 0: LLVM's */
	struct core_size core;
	struct window_size window;
	struct crossing_costs crossing;
};

/* False after an error message on standard error. */
bool pmu_settings_read(struct pmu_settings *settings, int argc, char **argv);

/* Prints an error message; always false. */
bool pmu_refuse(const char *message, const char *word);

#endif
