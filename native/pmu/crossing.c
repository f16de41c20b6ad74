#include "crossing.h"

#include <stddef.h>

uint16_t crossing_alone(const struct crossing_costs *costs, uint8_t crossing)
{
	switch (crossing) {
	case CROSSING_CALL_RETURN:
		return (uint16_t)costs->system_return;
	case CROSSING_EVENT_RETURN:
		return (uint16_t)costs->interrupt_return;
	case CROSSING_SWAP:
		return (uint16_t)costs->swap_base;
	default:
		return 0;
	}
}

/*
 * Whether a block that was executed to its end leads to kernel code there. An interrupt right after
 * a branch whose target is not in the code is not noticed within the kernel. Code that is returned
 * to may not be mapped yet, so that an exception is next.
 */
static bool leads(const struct pmu_block *block, uint8_t crossing, uint64_t to, uint64_t handler)
{
	const struct branch *branch = &block->branch;

	if (crossing == CROSSING_CALL_RETURN)
		return false;
	if (crossing == CROSSING_EVENT_RETURN)
		return to != handler;
	switch (branch->transfer) {
	case TRANSFER_NONE:
		return to == branch->next || (block->ends_with_repeat && to == branch->address);
	case TRANSFER_CONDITIONAL:
		return to == branch->next || to == branch->target;
	case TRANSFER_JUMP:
	case TRANSFER_CALL:
		return to == branch->target;
	default:
		return block->is_kernel;
	}
}

uint32_t crossing_into(const struct crossing_costs *costs, const struct pmu_block *from, bool ended,
		       const struct pmu_block *to, uint64_t *handler)
{
	if (from == NULL || !to->is_kernel)
		return 0;
	const uint8_t crossing = from->operations[from->size - 1].crossing;
	if (ended && crossing == CROSSING_CALL)
		return costs->system_call;
	/*
	 * QEMU translates an instruction again that accesses a device, and continues with it: a
	 * handler is not within the block.
	 */
	const bool goes_on = ended ? leads(from, crossing, to->start, *handler)
				   : to->start >= from->start && to->start < from->branch.next;
	if (goes_on)
		return 0;
	*handler = to->start;
	return costs->interrupt;
}
