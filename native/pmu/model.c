#include <string.h>

#include "model.h"

/* Neither a line nor a page. */
#define NONE UINT64_MAX

enum { PAGE_BITS = 12 };

bool model_make(struct model *model, const struct core_size *size)
{
	*model = (struct model){.size = *size};
	const bool sound = cache_make(&model->l1i, size->l1i) &&
			   cache_make(&model->l1d, size->l1d) &&
			   cache_make(&model->l2, size->l2) &&
			   cache_make(&model->itlb, size->itlb) &&
			   cache_make(&model->dtlb, size->dtlb) &&
			   cache_make(&model->l2_itlb, size->l2_itlb) &&
			   cache_make(&model->l2_dtlb, size->l2_dtlb) &&
			   targets_make(&model->targets, &size->targets) &&
			   direction_make(&model->direction, &size->direction);
	if (sound)
		model_clear(model);
	return sound;
}

void model_clear(struct model *model)
{
	struct cache *const caches[] = {&model->l1i,  &model->l1d,     &model->l2,     &model->itlb,
					&model->dtlb, &model->l2_itlb, &model->l2_dtlb};

	for (size_t i = 0; i < sizeof(caches) / sizeof(*caches); i++)
		cache_clear(caches[i]);
	targets_clear(&model->targets);
	direction_clear(&model->direction);
	memset(model->streams, 0, sizeof(model->streams));
	model->next_stream = 0;
	model->last_code_line = model->last_code_page = NONE;
}

/* Branches */

static void mispredict(struct model *model, struct tally tally, enum event event)
{
	count(tally, event);
	model->misprediction = event;
}

bool model_branch(struct model *model, const struct branch *branch, uint64_t to,
		  struct tally tally)
{
	struct targets *targets = &model->targets;
	const bool falls_through = branch->transfer == TRANSFER_CONDITIONAL && to == branch->next;
	const bool is_direct = branch->transfer <= TRANSFER_CALL;
	enum prediction prediction = TARGET_BY_ADDRESS;

	model->misprediction = EVENTS;
	model->late = 0;
	if (branch->transfer == TRANSFER_NONE)
		return false;
	/* A direct branch that continues elsewhere: an interrupt came just after it. */
	if (!falls_through && is_direct && to != branch->target)
		return true;
	switch (branch->transfer) {
	case TRANSFER_CONDITIONAL:
		tally.total[EVENT_conditional_branches]++;
		if (!direction_resolve(&model->direction, branch->address, !falls_through)) {
			mispredict(model, tally, EVENT_direction_mispredictions);
			/* The front end is redirected, whether the target is known or not. */
			if (!falls_through)
				targets_direct(targets, branch->address);
			break;
		}
		if (falls_through)
			break;
		/* Fall through. */
	case TRANSFER_JUMP:
	case TRANSFER_CALL:
		prediction = targets_direct(targets, branch->address);
		if (prediction == TARGET_WRONG)
			mispredict(model, tally, EVENT_btb_misses);
		break;
	case TRANSFER_INDIRECT_JUMP:
	case TRANSFER_INDIRECT_CALL:
		prediction = targets_indirect(targets, branch->address, to);
		if (prediction == TARGET_WRONG)
			mispredict(model, tally, EVENT_indirect_mispredictions);
		break;
	case TRANSFER_RETURN:
		if (!targets_return(targets, branch->address, to))
			mispredict(model, tally, EVENT_return_mispredictions);
		model->late = model->size.latency.return_target;
		break;
	default:
		break;
	}
	if (branch->transfer == TRANSFER_CALL || branch->transfer == TRANSFER_INDIRECT_CALL) {
		targets_call(targets, branch->next);
		model->late = model->size.latency.call_target;
	}
	if (prediction == TARGET_BY_PATH)
		model->late += model->size.latency.path_target;
	else if (prediction == TARGET_BY_L2_BTB)
		model->late += model->size.latency.l1_btb_miss;
	return !falls_through;
}

/* Code */

uint32_t model_code_page(struct model *model, uint64_t page, struct tally tally)
{
	const struct latencies *latency = &model->size.latency;

	if (page == model->last_code_page)
		return 0;
	model->last_code_page = page;
	if (cache_touch(&model->itlb, page))
		return 0;
	count(tally, EVENT_itlb_misses);
	if (cache_touch(&model->l2_itlb, page))
		return latency->itlb_miss;
	count(tally, EVENT_itlb_walks);
	return latency->itlb_miss + latency->itlb_walk;
}

static bool is_in_page_of(const struct model *model, uint64_t line, uint64_t other)
{
	const uint32_t bits = PAGE_BITS - model->size.line_bits;

	return line >> bits == other >> bits;
}

uint32_t model_code_miss(struct model *model, uint64_t line, struct tally tally)
{
	uint32_t cycles = model->size.latency.l1i_miss;

	count(tally, EVENT_l1i_misses);
	if (!cache_touch(&model->l2, line)) {
		count(tally, EVENT_l2_code_misses);
		cycles += model->size.latency.l2_code_miss;
	}
	for (uint64_t i = 1; i <= model->size.code_prefetch; i++) {
		if (!is_in_page_of(model, line, line + i))
			break;
		cache_touch(&model->l1i, line + i);
		cache_touch(&model->l2, line + i);
	}
	return cycles;
}

/* Data */

uint32_t model_data_page(struct model *model, uint64_t page, struct tally tally)
{
	const struct latencies *latency = &model->size.latency;
	struct cache *second = model->size.l2_dtlb.ways > 0 ? &model->l2_dtlb : &model->l2_itlb;

	if (cache_touch(&model->dtlb, page))
		return 0;
	count(tally, EVENT_dtlb_misses);
	if (cache_touch(second, page))
		return latency->dtlb_miss;
	count(tally, EVENT_dtlb_walks);
	return latency->dtlb_miss + latency->dtlb_walk;
}

/* Prefetches the following lines of a stream if the line continues one. */
static void prefetch(struct model *model, uint64_t line, uint64_t physical_line)
{
	for (uint32_t i = 0; i < STREAMS; i++) {
		struct stream *stream = &model->streams[i];
		if (stream->step == 0 && (line + 1 == stream->next || line - 1 == stream->next))
			stream->step = line - 1 == stream->next ? 1 : -1;
		else if (stream->step == 0 || line != stream->next)
			continue;
		uint64_t distance = (uint64_t)stream->step;
		for (uint32_t ahead = 0; ahead < model->size.data_prefetch; ahead++) {
			if (!is_in_page_of(model, line, line + distance))
				break;
			cache_touch(&model->l1d, line + distance);
			if (physical_line != NONE)
				cache_touch(&model->l2, physical_line + distance);
			distance += (uint64_t)stream->step;
		}
		stream->next = line + distance;
		return;
	}
	model->streams[model->next_stream] = (struct stream){line, 0};
	model->next_stream = (model->next_stream + 1) % STREAMS;
}

uint32_t model_data_miss(struct model *model, uint64_t line, uint64_t physical_line,
			 struct tally tally)
{
	uint32_t cycles = model->size.latency.l1d_miss;

	count(tally, EVENT_l1d_misses);
	if (physical_line != NONE && !cache_touch(&model->l2, physical_line)) {
		count(tally, EVENT_l2_data_misses);
		cycles += model->size.latency.l2_data_miss;
	}
	if (model->size.data_prefetch > 0)
		prefetch(model, line, physical_line);
	return cycles;
}
