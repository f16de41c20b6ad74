#define _GNU_SOURCE
#include "interval.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct counts {
	struct executed executed;
	uint64_t events[SIDES][EVENTS];
	struct repeats repeats[SIDES];
};

static const char *const sides[] = {[USER] = "user", [KERNEL] = "kernel"};

#define EVENT_NAME(name) #name,
static const char *const names[] = {PMU_EVENTS(EVENT_NAME)};
#undef EVENT_NAME

static struct counts *intervals;
static size_t interval_count;

struct vcpu *vcpu_new(const struct pmu_settings *settings)
{
	struct vcpu *vcpu = calloc(1, sizeof(*vcpu));

	if (vcpu == NULL || !model_make(&vcpu->model, &settings->core) ||
	    !window_make(&vcpu->window, &settings->window))
		return NULL;
	vcpu->slices = open_memstream(&vcpu->slices_text, &vcpu->slices_size);
	if (vcpu->slices == NULL)
		return NULL;
	vcpu_clear(vcpu, settings);
	return vcpu;
}

void vcpu_clear(struct vcpu *vcpu, const struct pmu_settings *settings)
{
	model_clear(&vcpu->model);
	window_clear(&vcpu->window);
	vcpu->running = vcpu->entered = NULL;
	vcpu->handler = 0;
	vcpu->access_count = 0;
	memset(vcpu->totals, 0, sizeof(vcpu->totals));
	memset(vcpu->repeats, 0, sizeof(vcpu->repeats));
	vcpu->last_user_code = UINT64_MAX;
	vcpu->last_page = vcpu->last_repeat_line[0] = vcpu->last_repeat_line[1] = UINT64_MAX;
	sites_clear(&vcpu->sites);
	vcpu->slice_left = (int64_t)settings->slice;
	rewind(vcpu->slices);
	vcpu->has_slices = false;
	vcpu->has_space = false;
}

static void print_counts(FILE *file, const struct counts *counts)
{
	fprintf(file, "{\"kernel_instructions\":%" PRIu64 ",\"user_instructions\":%" PRIu64,
		counts->executed.instructions[KERNEL], counts->executed.instructions[USER]);
	fprintf(file, ",\"kernel_taken_branches\":%" PRIu64 ",\"user_taken_branches\":%" PRIu64,
		counts->events[KERNEL][EVENT_taken_branches],
		counts->events[USER][EVENT_taken_branches]);
	for (int side = USER; side < SIDES; side++) {
		repeats_print(file, sides[side], &counts->repeats[side]);
		fprintf(file, ",\"%s_events\":{", sides[side]);
		for (int event = EVENT_taken_branches + 1; event < EVENTS; event++)
			fprintf(file, "%s\"%s\":%" PRIu64, event > EVENT_taken_branches + 1 ? "," : "",
				names[event], counts->events[side][event]);
		fputc('}', file);
	}
	fputc('}', file);
}

/* Replaces the file atomically: readers may look while QEMU runs, and QEMU may be killed. */
static bool write_counts(const char *path)
{
	char draft[4096];
	const int length = snprintf(draft, sizeof(draft), "%s.draft", path);
	FILE *file = length < (int)sizeof(draft) ? fopen(draft, "w") : NULL;

	if (file == NULL)
		return false;
	fputs("{\"version\":1,\"intervals\":[", file);
	for (size_t i = 0; i < interval_count; i++) {
		fputs(i > 0 ? ",\n" : "\n", file);
		print_counts(file, &intervals[i]);
	}
	fputs("]}\n", file);
	const bool sound = !ferror(file);
	return fclose(file) == 0 && sound && rename(draft, path) == 0;
}

static bool write_where(const char *path, struct vcpu *const *vcpus, size_t count)
{
	struct sites *sum = calloc(1, sizeof(*sum));
	FILE *file = fopen(path, "a");
	const char *separator = "";

	if (file == NULL || sum == NULL)
		return false;
	bool sound = true;
	for (size_t i = 0; i < count; i++)
		sound = sound && (vcpus[i] == NULL || sites_add(sum, &vcpus[i]->sites));
	fputs("{\"sites\":", file);
	sites_print(file, sum);
	fputs(",\"slices\":[", file);
	for (size_t i = 0; i < count; i++) {
		if (vcpus[i] == NULL)
			continue;
		/* The rest of the last slice is a slice too. */
		fputs(vcpus[i]->has_slices ? "," : "", vcpus[i]->slices);
		sites_slice(vcpus[i]->slices, &vcpus[i]->sites);
		fflush(vcpus[i]->slices);
		fprintf(file, "%s%.*s", separator, (int)vcpus[i]->slices_size, vcpus[i]->slices_text);
		separator = ",";
	}
	fputs("]}\n", file);
	sites_clear(sum);
	free(sum);
	sound = sound && !ferror(file);
	return fclose(file) == 0 && sound;
}

static bool write_head_of_where(const char *path)
{
	FILE *file = fopen(path, "w");

	if (file == NULL)
		return false;
	fputs("{\"version\":1,\"events\":[", file);
	for (int event = 0; event < EVENTS; event++)
		fprintf(file, "%s\"%s\"", event > 0 ? "," : "", names[event]);
	fputs("]}\n", file);
	return fclose(file) == 0;
}

bool interval_begin_files(const struct pmu_settings *settings)
{
	return write_counts(settings->out) &&
	       (settings->where == NULL || write_head_of_where(settings->where));
}

bool interval_write(const struct pmu_settings *settings, struct executed executed,
		    struct vcpu *const *vcpus, size_t count)
{
	struct counts *grown = realloc(intervals, (interval_count + 1) * sizeof(*intervals));

	if (grown == NULL)
		return false;
	intervals = grown;
	struct counts *counts = &intervals[interval_count++];
	*counts = (struct counts){.executed = executed};
	for (int side = USER; side < SIDES; side++)
		counts->repeats[side].begun = executed.repeats[side];
	for (size_t i = 0; i < count; i++)
		for (int side = USER; vcpus[i] != NULL && side < SIDES; side++) {
			for (int event = 0; event < EVENTS; event++)
				counts->events[side][event] += vcpus[i]->totals[side][event];
			counts->repeats[side].half_iterations +=
				vcpus[i]->repeats[side].half_iterations;
			counts->repeats[side].half_bytes += vcpus[i]->repeats[side].half_bytes;
		}
	return write_counts(settings->out) &&
	       (settings->where == NULL || write_where(settings->where, vcpus, count));
}
