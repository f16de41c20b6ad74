/* The functions of the model that the tests call, with arrays as arguments. Tables last as long as
 * the process, as in the plugin. */
#include <stdbool.h>
#include <stddef.h>

#include "crossing.h"
#include "model.h"
#include "pages.h"
#include "window.h"

void run_cache(uint64_t sets, uint32_t ways, const uint64_t *keys, size_t count, bool *hits)
{
	struct cache cache;

	if (!cache_make(&cache, (struct table_size){(uint32_t)sets, ways}))
		return;
	for (size_t i = 0; i < count; i++)
		hits[i] = cache_touch(&cache, keys[i]);
}

void run_direction(const struct direction_size *size, const uint64_t *addresses, const bool *taken,
		   size_t count, bool *right)
{
	struct direction direction;

	if (!direction_make(&direction, size))
		return;
	for (size_t i = 0; i < count; i++)
		right[i] = direction_resolve(&direction, addresses[i], taken[i]);
}

/* Base-2 logarithms of the sizes of the pages of addresses, by page tables in `bytes`. */
void run_pages(const char *name, const uint8_t *bytes, uint64_t size, uint64_t root,
	       uint64_t control, const uint64_t *addresses, size_t count, uint32_t *bits)
{
	const struct page_format *format = page_format(name);
	const struct page_tables tables = {root, control};

	if (format == NULL)
		return;
	const struct guest_memory memory = {bytes, format->memory, size};
	for (size_t i = 0; i < count; i++)
		bits[i] = format->page_bits(&memory, &tables, addresses[i]);
}

/* The guest's memory that is mapped in this process; returns its address, or 0. */
uint64_t run_guest_memory(const char *name, uint64_t *first, uint64_t *size)
{
	struct guest_memory memory = {0};

	if (!guest_memory_find(&memory, page_format(name)))
		return 0;
	*first = memory.first;
	*size = memory.size;
	return (uintptr_t)memory.bytes;
}

/* Zero in `calls` is not a call, and zero in `returns` is not a return. */
void run_returns(uint32_t depth, const uint64_t *calls, const uint64_t *returns, size_t count,
		 bool *right)
{
	const struct targets_size size = {.return_depth = depth};
	struct targets targets;

	if (!targets_make(&targets, &size))
		return;
	for (size_t i = 0; i < count; i++) {
		if (calls[i] != 0)
			targets_call(&targets, calls[i]);
		right[i] = returns[i] != 0 && targets_return(&targets, 0, returns[i]);
	}
}

void run_indirect(uint32_t entries, const uint64_t *branches, const uint64_t *leads, size_t count,
		  bool *right)
{
	const struct targets_size size = {.indirect_entries = entries,
					  .paths = entries > 0 ? 2 : 0,
					  .path_lengths = {2, 8}};
	struct targets targets;

	if (!targets_make(&targets, &size))
		return;
	for (size_t i = 0; i < count; i++)
		right[i] = targets_indirect(&targets, branches[i], leads[i]) != TARGET_WRONG;
}

/*
 * A sequence of branches; returns whether each counts as taken, the cycles by which it is predicted
 * late, and the events.
 */
void run_branches(const struct core_size *size, const struct branch *branches, const uint64_t *to,
		  size_t count, bool *taken, uint64_t *late, uint64_t *events)
{
	struct model model;

	if (!model_make(&model, size))
		return;
	for (size_t i = 0; i < count; i++) {
		taken[i] = model_branch(&model, &branches[i], to[i], (struct tally){events, NULL});
		late[i] = model.late;
	}
}

void run_code(const struct core_size *size, const uint64_t *lines, size_t count, uint64_t *events)
{
	struct model model;

	if (!model_make(&model, size))
		return;
	for (size_t i = 0; i < count; i++)
		model_code_line(&model, lines[i], (struct tally){events, NULL});
}

/* As the plugin does with each access. */
void run_data(const struct core_size *size, const uint64_t *lines, size_t count, uint64_t *events)
{
	struct model model;

	if (!model_make(&model, size))
		return;
	for (size_t i = 0; i < count; i++) {
		const struct tally tally = {events, NULL};
		model_data_page(&model, lines[i] >> 6, tally);
		if (!cache_touch(&model.l1d, lines[i]))
			model_data_miss(&model, lines[i], lines[i], tally);
	}
}

/*
 * Cycles between a block whose branch is at 0x1010, goes to 0x2000 or falls through to 0x1014, and
 * one that begins at `to`.
 */
uint32_t run_crossing(const struct crossing_costs *costs, uint32_t transfer, uint32_t crossing,
		      bool repeats, bool in_kernel, bool ended, uint64_t to, bool to_kernel,
		      uint64_t *handler)
{
	struct operation operations[2] = {[1] = {.crossing = (uint8_t)crossing}};
	const struct pmu_block from = {.start = 0x1000, .size = 2, .is_kernel = in_kernel,
				       .ends_with_repeat = repeats, .operations = operations,
				       .branch = {(enum transfer)transfer, 0x1010, 0x1014, 0x2000}};
	const struct pmu_block next = {.start = to, .is_kernel = to_kernel};

	return crossing_into(costs, &from, ended, &next, handler);
}

uint32_t run_first_crossing(const struct crossing_costs *costs)
{
	uint64_t handler = 0;

	return crossing_into(costs, NULL, false, &(struct pmu_block){.is_kernel = true}, &handler);
}

/*
 * The needs of an instruction of 16 bytes, at a multiple of 16 plus `shifted`. Register 0 and unit
 * kind 0 mean none. Results of writers of kind `bypassed` are needed `bypass_cycles` after the
 * start.
 */
struct needs {
	uint16_t reads, late, writes, latency, load_latency, kind, kind_cycles, slots, stores;
	uint16_t writer, bypassed, bypass_cycles, shifted, alone;
};

/* Events around each block; `code_line` numbers the missing line of code within the block. */
struct around {
	bool turned, mispredicted;
	uint32_t redirected, late, code_line, code_translating, code_missing, repeat_missing, repeats;
};

/*
 * Repeated blocks of the same instructions, with the same accesses. By default fetching is never the
 * bottleneck.
 */
void run_window(const struct window_size *size, const struct needs *needs, uint32_t count,
		const struct access *accesses, uint32_t access_count, uint32_t times,
		const struct around *around, uint64_t *cycles)
{
	static struct window window;
	struct operation operations[64] = {0};
	struct bypass bypasses[64];

	if (!window_make(&window, size))
		return;
	for (uint32_t i = 0; i < count; i++) {
		struct operation *operation = &operations[i];
		operation->address = 16 * i + needs[i].shifted;
		operation->size = 16;
		operation->latency = needs[i].latency;
		operation->load_latency = needs[i].load_latency;
		operation->slots = (uint8_t)needs[i].slots;
		operation->stores = needs[i].stores;
		operation->read_count = needs[i].reads > 0;
		operation->reads[0] = (struct operand){needs[i].reads, (int16_t)needs[i].late, 0};
		operation->write_count = needs[i].writes > 0;
		operation->writes[0] =
			(struct operand){needs[i].writes, (int16_t)needs[i].latency, needs[i].writer};
		bypasses[i] = (struct bypass){0, needs[i].bypassed, (int16_t)needs[i].bypass_cycles};
		operation->bypasses = &bypasses[i];
		operation->bypass_count = needs[i].bypassed > 0;
		operation->use_count = needs[i].kind > 0;
		operation->uses[0] =
			(struct use){(uint8_t)needs[i].kind, (uint8_t)needs[i].kind_cycles};
		operation->takes_long = needs[i].kind_cycles > 1;
		operation->alone = needs[i].alone;
	}
	for (uint32_t i = 0; i < times; i++) {
		window_predicts_late(&window, around->late);
		if (around->code_translating + around->code_missing > 0)
			window_code_misses(&window, around->code_line, around->code_translating,
					   around->code_missing);
		const uint64_t executed = window_execute(&window, operations, count, accesses,
							 access_count, cycles, NULL);
		for (uint32_t line = 0; line < around->repeats; line++)
			window_repeats(&window, around->repeat_missing, cycles, NULL);
		if (around->turned)
			window_turn(&window);
		if (around->redirected > 0)
			window_redirected(&window, around->redirected);
		if (around->mispredicted)
			window_mispredicted(&window, executed);
	}
}
