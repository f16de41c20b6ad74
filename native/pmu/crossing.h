/* Entering and leaving the kernel, which serialises: nothing else is executed meanwhile. */
#ifndef MEPOF_PMU_CROSSING_H
#define MEPOF_PMU_CROSSING_H

#include <stdbool.h>
#include <stdint.h>

#include "blocks.h"

/* Cycles of each; 0 where nothing is known. */
struct crossing_costs {
	uint32_t system_call, system_return, interrupt, interrupt_return, swap_base;
};

/*
 * Cycles of an instruction by how it crosses (enum crossing), except of those that enter the
 * kernel: these are of the block that they lead to.
 */
uint16_t crossing_alone(const struct crossing_costs *costs, uint8_t crossing);

/*
 * Cycles of entering the kernel, if that happened between two blocks that one CPU executed one
 * after the other. `from` is NULL if nothing is known of it; `ended` if its last instruction
 * started. `handler` is where the last interrupt or exception led, which this updates.
 */
uint32_t crossing_into(const struct crossing_costs *costs, const struct pmu_block *from, bool ended,
		       const struct pmu_block *to, uint64_t *handler);

#endif
