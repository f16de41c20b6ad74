/* What the plugin's arguments ask for. */
#ifndef MEPOF_PMU_SETTINGS_H
#define MEPOF_PMU_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"
#include "window.h"

struct pmu_settings {
	const char *out;
	const char *where; /* NULL: nobody asks where events happen */
	bool all;	   /* from the beginning to the end, rather than between marks */
	/* Logarithms of two of page sizes: of the kernel's text, and its data but what is mapped
	 * by small pages. User code and data have pages of 4 KiB. */
	uint32_t kernel_text_page, kernel_data_page;
	uint32_t slice; /* instructions, about, from one row of the heatmap to the next */
	const char *cpu; /* LLVM's name of the core */
	uint32_t width, room; /* of the window, where they are not LLVM's; or 0 */
	struct core_size core;
	struct window_size window;
};

/* False after a complaint on standard error. */
bool pmu_settings_read(struct pmu_settings *settings, int argc, char **argv);

/* Complains, and is false. */
bool pmu_refuse(const char *complaint, const char *word);

#endif
