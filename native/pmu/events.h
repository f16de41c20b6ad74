/* The events that the model counts. The names are those of its output and of report.json. */
#ifndef MEPOF_PMU_EVENTS_H
#define MEPOF_PMU_EVENTS_H

#define PMU_EVENTS(EVENT)                  \
	EVENT(taken_branches)              \
	EVENT(conditional_branches)        \
	EVENT(loads)                       \
	EVENT(stores)                      \
	EVENT(l1i_accesses)                \
	EVENT(l1i_misses)                  \
	EVENT(l1d_misses)                  \
	EVENT(l2_code_misses)              \
	EVENT(l2_data_misses)              \
	EVENT(op_cache_misses)             \
	EVENT(itlb_misses)                 \
	EVENT(dtlb_misses)                 \
	EVENT(itlb_walks)                  \
	EVENT(dtlb_walks)                  \
	EVENT(unknown_pages)               \
	EVENT(return_mispredictions)       \
	EVENT(btb_misses)                  \
	EVENT(indirect_mispredictions)     \
	EVENT(direction_mispredictions)    \
	EVENT(execution_cycles)            \
	EVENT(fetch_cycles)                \
	EVENT(misprediction_cycles)        \
	EVENT(data_cycles)

#define PMU_EVENT_NUMBER(name) EVENT_##name,
enum event { PMU_EVENTS(PMU_EVENT_NUMBER) EVENTS };
#undef PMU_EVENT_NUMBER

#endif
