#include "window.h"

#include <string.h>

/* Granularity at which stores are found, in bytes. */
enum { WORD = 4 };

bool window_make(struct window *window, const struct window_size *size)
{
	struct cache op_cache;

	if (!cache_make(&op_cache, size->op_cache))
		return false;
	window->size = *size;
	window->op_cache = op_cache;
	window_clear(window);
	return true;
}

void window_clear(struct window *window)
{
	const struct window_size size = window->size;
	const struct cache op_cache = window->op_cache;

	memset(window, 0, sizeof(*window));
	window->size = size;
	window->op_cache = op_cache;
	cache_clear(&window->op_cache);
	window->fetch_cause = EVENT_fetch_cycles;
}

static uint64_t later(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

static uint64_t earlier_by(uint64_t cycle, uint64_t cycles)
{
	return cycle > cycles ? cycle - cycles : 0;
}

static void count(enum event event, uint64_t by, uint64_t *total, uint64_t *site)
{
	total[event] += by;
	if (site != NULL)
		site[event] += by;
}

static void retire(struct window *window, uint64_t retired, enum event cause, uint64_t *total,
		uint64_t *site)
{
	if (retired <= window->retired)
		return;
	count(cause, retired - window->retired, total, site);
	window->retired = retired;
}

/* Fetching */

/* Requests the lines of the block up to `last`. */
static void ask(struct window *window, uint64_t last)
{
	for (; window->next_awaited < window->awaited_count; window->next_awaited++) {
		const struct awaited *awaited = &window->awaited[window->next_awaited];
		if (awaited->line > last)
			break;
		uint64_t there = window->predicted + awaited->translating;
		if (awaited->missing > 0) {
			there = later(there, window->port);
			window->port = there + window->size.line_cycles;
		}
		window->arrived = later(window->arrived, there + awaited->missing);
		window->waits = true;
	}
}

/*
 * Whether the delivery of the block continues with so many more instructions; otherwise a new one
 * begins with them.
 */
static bool delivers(struct delivery *delivery, uint64_t block, uint32_t at_once, uint32_t more)
{
	if (delivery->left >= more && delivery->block == block) {
		delivery->left -= more;
		return true;
	}
	*delivery = (struct delivery){block, at_once - more};
	return false;
}

/* Fetching enters a block: must it be decoded? */
static void look_up(struct window *window, uint64_t address, uint64_t *total, uint64_t *site)
{
	const uint32_t bits = window->size.fetch_bits;
	/* The low bits select the set. */
	const bool decodes = window->op_cache.ways > 0 &&
			     !cache_touch(&window->op_cache, address >> bits | address << (64 - bits));

	if (decodes)
		count(EVENT_op_cache_misses, 1, total, site);
	if (decodes && !window->decodes) {
		window->fetched += window->size.decode_turn;
		window->decode.left = 0;
	}
	window->decodes = decodes;
}

/* Fetches an instruction at that address of a block, or its tail. */
static void fetch_block(struct window *window, uint64_t address, uint32_t instructions,
			uint64_t *total, uint64_t *site)
{
	const struct window_size *size = &window->size;

	bool goes_on = delivers(&window->fetch, address >> size->fetch_bits, size->fetch_operations,
				instructions);
	if (!goes_on)
		look_up(window, address, total, site);
	if (window->decodes)
		goes_on = delivers(&window->decode, address >> size->decode_bits,
				   size->decode_operations, 1);
	if (goes_on && !window->waits)
		return;
	window->waits = false;
	/* The queue hides a bottleneck of fetching until dispatching catches up. */
	window->fetched =
		later(window->fetched + 1, earlier_by(window->dispatched, size->fetch_ahead));
	window->fetched = later(window->fetched, later(window->predicted, window->arrived));
	/* The predictor continues as far as its queue has capacity. */
	window->queue[window->next_queued] = window->fetched;
	window->next_queued =
		window->next_queued + 1 < size->predict_ahead ? window->next_queued + 1 : 0;
	window->predicted = later(window->predicted + 1, window->queue[window->next_queued]);
}

static void fetch(struct window *window, const struct operation *operation, uint64_t *total,
		  uint64_t *site)
{
	const uint64_t address = operation->address, last = address + operation->size - 1;
	const uint32_t bits = window->size.fetch_bits;
	const uint32_t instructions = !window->size.fetch_free || operation->slots > 0;

	ask(window, last >> window->size.line_bits);
	fetch_block(window, address, instructions, total, site);
	if (window->size.fetch_split && last >> bits != address >> bits)
		fetch_block(window, last >> bits << bits, instructions, total, site);
}

void window_turn(struct window *window)
{
	window->fetch.left = window->decode.left = 0;
}

void window_mispredicted(struct window *window, uint64_t executed)
{
	/* Fetching takes one of these cycles. */
	window->fetched =
		later(window->fetched, executed + earlier_by(window->size.misprediction, 1));
	window->predicted = window->fetched;
	window->fetch_cause = EVENT_misprediction_cycles;
	window_turn(window);
}

void window_redirected(struct window *window, uint32_t cycles)
{
	window->fetched =
		later(window->fetched, earlier_by(window->dispatched, window->size.fetch_ahead)) + cycles;
	window->predicted = window->fetched;
	window_turn(window);
}

void window_predicts_late(struct window *window, uint32_t cycles)
{
	window->predicted += cycles;
}

void window_code_misses(struct window *window, uint64_t line, uint32_t translating,
			uint32_t missing)
{
	if (window->awaited_count < MAX_AWAITED)
		window->awaited[window->awaited_count++] =
			(struct awaited){line, translating, missing};
}

/* Dispatches; returns whether fetching, rather than capacity, decided when. */
static bool dispatch(struct window *window, const struct operation *operation)
{
	const struct pipeline *pipeline = &window->size.pipeline;
	const uint32_t slots =
		operation->slots < pipeline->window ? operation->slots : pipeline->window;
	bool by_fetch = false;

	if (window->fetched > window->dispatched) {
		window->dispatched = window->fetched;
		window->slots = 0;
		by_fetch = true;
	}
	if (slots > 0) {
		uint32_t last = window->next_freed + slots - 1u;
		last -= last < pipeline->window ? 0 : pipeline->window;
		if (window->freed[last] > window->dispatched) {
			window->dispatched = window->freed[last];
			window->slots = 0;
			by_fetch = false;
		}
	}
	if (window->slots > 0 && window->slots + operation->slots > pipeline->width) {
		window->dispatched++;
		window->slots = 0;
	}
	/* Some instructions have more slots than a cycle. */
	for (window->slots += operation->slots; window->slots > pipeline->width;
	     window->slots -= pipeline->width)
		window->dispatched++;
	return by_fetch;
}

/* Execution units */

static uint8_t *reserved_at(struct window *window, uint64_t cycle)
{
	struct reserved *row = &window->reservations[cycle % RESERVATION_CYCLES];

	if (row->cycle != (uint32_t)cycle) {
		memset(row, 0, sizeof(*row));
		row->cycle = (uint32_t)cycle;
	}
	return row->taken;
}

/* Reserves all units that it needs in a cycle, if they are free. */
static bool reserve(uint8_t *taken, const uint8_t *units, const struct operation *operation)
{
	for (uint32_t i = 0; i < operation->use_count; i++)
		if (taken[operation->uses[i].kind] >= units[operation->uses[i].kind])
			return false;
	for (uint32_t i = 0; i < operation->use_count; i++)
		taken[operation->uses[i].kind]++;
	return true;
}

/*
 * Reserves all units that it needs, and returns the first cycle from `cycle` on in which they are
 * free.
 */
static uint64_t start(struct window *window, const struct operation *operation, uint64_t cycle)
{
	const uint8_t *units = window->size.pipeline.units;

	if (!operation->takes_long) {
		while (!reserve(reserved_at(window, cycle), units, operation))
			cycle++;
		return cycle;
	}
	for (uint32_t i = 0; i < operation->use_count;) {
		const struct use use = operation->uses[i++];
		for (uint32_t k = 0; k < use.cycles; k++)
			if (reserved_at(window, cycle + k)[use.kind] >= units[use.kind]) {
				cycle += k + 1;
				i = 0;
				break;
			}
	}
	for (uint32_t i = 0; i < operation->use_count; i++)
		for (uint32_t k = 0; k < operation->uses[i].cycles; k++)
			reserved_at(window, cycle + k)[operation->uses[i].kind]++;
	return cycle;
}

/* Memory */

static uint64_t end_of(uint64_t address, uint8_t bytes)
{
	return address + bytes;
}

static void store(struct window *window, const struct access *access, uint64_t ready)
{
	const uint64_t last = (end_of(access->address, access->bytes) - 1) / WORD;

	window->stores++;
	for (uint64_t word = access->address / WORD; word <= last; word++) {
		struct stored *stored = window->stored[word % STORED];
		if (stored->address != access->address || stored->bytes != access->bytes)
			stored[1] = stored[0];
		*stored = (struct stored){access->address, ready, window->stores, access->bytes};
	}
}

static bool overlaps(const struct stored *stored, const struct access *access)
{
	return stored->address < end_of(access->address, access->bytes) &&
	       end_of(stored->address, stored->bytes) > access->address;
}

static bool covers(const struct stored *stored, const struct access *access)
{
	return stored->address <= access->address &&
	       end_of(stored->address, stored->bytes) >= end_of(access->address, access->bytes);
}

/* The store from which a load gets its value or the latest part of it, or NULL. */
static const struct stored *store_of(const struct window *window, const struct access *access)
{
	const uint64_t last = (end_of(access->address, access->bytes) - 1) / WORD;
	const struct stored *found = NULL;

	for (uint64_t word = access->address / WORD; word <= last; word++) {
		const struct stored *stored = window->stored[word % STORED];
		stored += !overlaps(stored, access);
		if (overlaps(stored, access) && (found == NULL || stored->ready > found->ready))
			found = stored;
	}
	return found;
}

/* When a value that is requested at that time is loaded. */
static uint64_t load(struct window *window, const struct operation *operation,
		     const struct access *access, uint64_t asked)
{
	const uint64_t loaded = asked + operation->load_latency + access->missing;
	const struct stored *stored = store_of(window, access);
	uint64_t *distance = &window->distances[operation->address % PAIRS];

	if (stored == NULL)
		return loaded;
	const uint32_t forwarding = covers(stored, access) ? window->size.forwarding
							   : window->size.blocked_forwarding;
	/* Already in the cache. */
	if (stored->ready + 2 * operation->load_latency + forwarding < asked)
		return loaded;
	const bool is_expected = *distance == window->stores - stored->number;
	*distance = window->stores - stored->number;
	if (window->size.renamed_forwarding != NEVER_RENAMED && is_expected &&
	    !operation->forwards_late && access->bytes >= 4 &&
	    stored->address == access->address && stored->bytes == access->bytes)
		return later(asked, stored->ready + window->size.renamed_forwarding);
	return later(loaded, stored->ready + forwarding);
}

/* Execution */

/* Cycles after the start until a register is needed. */
static int32_t needed_after(const struct window *window, const struct operation *operation,
			    const struct operand *read)
{
	const uint16_t writer = window->writers[read->reg];

	for (uint32_t i = 0; i < operation->bypass_count && writer != 0; i++)
		if (operation->bypasses[i].read == read->number &&
		    operation->bypasses[i].writer == writer)
			return operation->bypasses[i].cycles;
	return read->cycles;
}

/* When it can begin, and when all inputs other than loaded ones are ready. */
static void operands_ready(const struct window *window, const struct operation *operation,
			   uint64_t *begin, uint64_t *late)
{
	for (uint32_t i = 0; i < operation->read_count; i++) {
		const uint64_t ready = window->ready[operation->reads[i].reg];
		const int32_t after = needed_after(window, operation, &operation->reads[i]);
		if (operation->load_latency > 0 && after >= operation->load_latency)
			*late = later(*late, ready);
		else if (after > 0)
			*begin = later(*begin, earlier_by(ready, (uint64_t)after));
		else
			*begin = later(*begin, ready + (uint64_t)-after);
	}
}

/* When its values from memory are loaded; consumes the accesses. */
static uint64_t load_all(struct window *window, const struct operation *operation, uint64_t begin,
			 const struct access **access, const struct access *end, uint32_t number,
			 uint32_t *missing)
{
	uint64_t loaded = 0;

	for (; *access < end && (*access)->operation == number; ++*access) {
		if ((*access)->is_store)
			continue;
		loaded = later(loaded, load(window, operation, *access, begin));
		*missing = *missing > (*access)->missing ? *missing : (*access)->missing;
	}
	return loaded > 0 ? loaded : begin + operation->load_latency;
}

static uint64_t execute(struct window *window, const struct operation *operation,
			const struct access **access, const struct access *end, uint32_t number,
			uint32_t *missing)
{
	const struct access *first = *access;
	const bool in_order = window->size.pipeline.window == 0;
	uint64_t begin = window->dispatched + 1, late = 0;

	operands_ready(window, operation, &begin, &late);
	if (in_order)
		begin = later(begin, later(window->started, late));
	begin = start(window, operation, begin);
	window->started = begin;
	/* An instruction that cannot start stalls fetching. */
	if (in_order && begin - 1 > window->dispatched) {
		window->dispatched = begin - 1;
		window->slots = operation->slots;
	}
	const uint64_t inputs =
		later(load_all(window, operation, begin, access, end, number, missing), late);
	const uint16_t load = operation->load_latency;
	const uint64_t executed = inputs + earlier_by(operation->latency, load);
	for (uint8_t i = 0; i < operation->write_count; i++) {
		const struct operand *written = &operation->writes[i];
		/*
		 * Results that do not depend on the load, such as an updated address, do not wait
		 * for it.
		 */
		window->ready[written->reg] = written->cycles >= load
						      ? inputs + (uint64_t)(written->cycles - load)
						      : begin + (uint64_t)written->cycles;
		window->writers[written->reg] = written->number;
	}
	for (; operation->stores && first < *access; first++)
		if (first->is_store)
			/* The store takes the last cycle of the latency. */
			store(window, first, earlier_by(executed, 1));
	return executed;
}

static void stop(struct window *window, uint32_t cycles, enum event cause, uint64_t *total,
		 uint64_t *site)
{
	retire(window, window->retired + cycles, cause, total, site);
	window->dispatched = later(window->dispatched, window->retired);
	window->slots = 0;
}

void window_takes(struct window *window, uint32_t cycles, uint64_t *total, uint64_t *site)
{
	stop(window, cycles, EVENT_execution_cycles, total, site);
}

uint64_t window_execute(struct window *window, const struct operation *operations, uint32_t count,
			const struct access *accesses, uint32_t access_count, uint64_t *total,
			uint64_t *site)
{
	const uint32_t capacity = window->size.pipeline.window;
	const struct access *const end = accesses + access_count;
	uint64_t executed = 0;

	for (uint32_t i = 0; i < count; i++) {
		enum event cause = EVENT_execution_cycles;
		uint32_t missing = 0;
		fetch(window, &operations[i], total, site);
		if (dispatch(window, &operations[i]))
			cause = window->fetch_cause;
		window->fetch_cause = EVENT_fetch_cycles;
		executed = execute(window, &operations[i], &accesses, end, i, &missing);
		retire(window, executed, missing > 0 ? EVENT_data_cycles : cause, total, site);
		if (operations[i].alone > 0)
			window_takes(window, operations[i].alone, total, site);
		for (uint8_t k = 0; capacity > 0 && k < operations[i].slots; k++) {
			window->freed[window->next_freed] = window->retired;
			window->next_freed = window->next_freed + 1 < capacity ? window->next_freed + 1 : 0;
		}
	}
	ask(window, UINT64_MAX);
	window->awaited_count = window->next_awaited = 0;
	return executed;
}

void window_repeats(struct window *window, uint32_t missing, uint64_t *total, uint64_t *site)
{
	stop(window, window->size.repeat_line + missing / 4,
	     missing > 0 ? EVENT_data_cycles : EVENT_execution_cycles, total, site);
}
