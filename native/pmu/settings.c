#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WAYS = 128, MAX_SETS = 1 << 20, MAX_NUMBERS = MAX_TABLES + 3 };

bool pmu_refuse(const char *message, const char *word)
{
	fprintf(stderr,
		"pmu: %s%s%s (usage: -plugin pmu.so,out=FILE[,where=FILE[,slice=N]][,span=marks|all]"
		"[,kernel-text-page=BITS][,kernel-data-page=BITS],line=BYTES,l1i=SETS:WAYS,l1d=…,l2=…,"
		"itlb=…,dtlb=…,l2-itlb=…,l2-dtlb=…,btb=…,l1-btb=…,indirect=ENTRIES:HISTORY…,path=all|caller,returns=DEPTH,"
		"direction=BASE_BITS:TABLE_BITS:HISTORY…,code-prefetch=LINES,data-prefetch=LINES,cpu=NAME,"
		"fetch-bytes=BYTES,fetch-instructions=N,fetch-ahead=CYCLES,misprediction=CYCLES,…)\n",
		message, word ? ": " : "", word ? word : "");
	return false;
}

/* Reads whole numbers separated by colons; returns how many, or 0. */
static size_t read_numbers(const char *text, uint64_t *numbers)
{
	size_t count = 0;

	for (;;) {
		char *rest;
		if (count == MAX_NUMBERS || *text < '0' || *text > '9')
			return 0;
		errno = 0;
		numbers[count++] = strtoull(text, &rest, 10);
		if (errno != 0)
			return 0;
		if (*rest == '\0')
			return count;
		if (*rest != ':')
			return 0;
		text = rest + 1;
	}
}

static bool is_power_of_two(uint64_t number)
{
	return number > 0 && (number & (number - 1)) == 0;
}

static bool read_table(const char *text, struct table_size *size)
{
	uint64_t numbers[MAX_NUMBERS];

	if (read_numbers(text, numbers) != 2 || !is_power_of_two(numbers[0]) ||
	    numbers[0] > MAX_SETS || numbers[1] > MAX_WAYS)
		return false;
	*size = (struct table_size){(uint32_t)numbers[0], (uint32_t)numbers[1]};
	return true;
}

static bool read_number(const char *text, uint64_t min, uint64_t max, uint32_t *number)
{
	uint64_t numbers[MAX_NUMBERS];

	if (read_numbers(text, numbers) != 1 || numbers[0] < min || numbers[0] > max)
		return false;
	*number = (uint32_t)numbers[0];
	return true;
}

/* Lengths of histories, which rise and begin at 1 or more. */
static bool take_rising(const uint64_t *numbers, size_t count, uint64_t max, uint32_t *lengths)
{
	for (size_t i = 0; i < count; i++) {
		if (numbers[i] > max || numbers[i] <= (i > 0 ? numbers[i - 1] : 0))
			return false;
		lengths[i] = (uint32_t)numbers[i];
	}
	return true;
}

static bool read_direction(const char *text, struct direction_size *size)
{
	uint64_t numbers[MAX_NUMBERS];
	const size_t count = read_numbers(text, numbers);

	if (count < 2 || count - 2 > MAX_TABLES || numbers[0] < 1 || numbers[0] > 24 ||
	    numbers[1] < MAX_TABLES || numbers[1] > 24)
		return false;
	*size = (struct direction_size){.base_bits = (uint32_t)numbers[0],
					.table_bits = (uint32_t)numbers[1],
					.tables = (uint32_t)(count - 2)};
	return take_rising(numbers + 2, size->tables, MAX_HISTORY - 1, size->history);
}

static bool read_indirect(const char *text, struct targets_size *size)
{
	uint64_t numbers[MAX_NUMBERS];
	const size_t count = read_numbers(text, numbers);

	if (count < 1 || count - 1 > MAX_PATHS || numbers[0] > 1 << 24 || numbers[0] < count - 1)
		return false;
	size->indirect_entries = (uint32_t)numbers[0];
	size->paths = (uint32_t)(count - 1);
	return take_rising(numbers + 1, size->paths, MAX_PATH_LENGTH, size->path_lengths);
}

static bool read_line(const char *text, uint32_t *bits)
{
	uint32_t bytes;

	if (!read_number(text, 16, 4096, &bytes) || !is_power_of_two(bytes))
		return false;
	*bits = (uint32_t)__builtin_ctz(bytes);
	return true;
}

static bool read_argument(struct pmu_settings *settings, const char *name, const char *value)
{
	struct core_size *core = &settings->core;
	struct window_size *window = &settings->window;
	const struct {
		const char *name;
		struct table_size *size;
	} tables[] = {
		{"l1i", &core->l1i},
		{"l1d", &core->l1d},
		{"l2", &core->l2},
		{"itlb", &core->itlb},
		{"dtlb", &core->dtlb},
		{"l2-itlb", &core->l2_itlb},
		{"l2-dtlb", &core->l2_dtlb},
		{"op-cache", &window->op_cache},
		{"btb", &core->targets.btb},
		{"l1-btb", &core->targets.l1_btb},
	};
	const struct {
		const char *name;
		uint32_t min, max;
		uint32_t *number;
	} numbers[] = {
		{"returns", 0, 1024, &core->targets.return_depth},
		{"code-prefetch", 0, 16, &core->code_prefetch},
		{"data-prefetch", 0, 32, &core->data_prefetch},
		{"slice", 1000, UINT32_MAX, &settings->slice},
		{"kernel-text-page", 12, 30, &settings->kernel_text_page},
		{"kernel-data-page", 12, 30, &settings->kernel_data_page},
		{"width", 0, 16, &settings->width},
		{"window", 0, MAX_WINDOW, &settings->reorder_slots},
		{"fetch-instructions", 1, 64, &window->fetch_operations},
		{"fetch-split", 0, 1, &window->fetch_split},
		{"fetch-free", 0, 1, &window->fetch_free},
		{"decode-instructions", 1, 64, &window->decode_operations},
		{"decode-turn", 0, 1000, &window->decode_turn},
		{"fetch-ahead", 0, 1000, &window->fetch_ahead},
		{"predict-ahead", 1, MAX_PREDICTED, &window->predict_ahead},
		{"line-cycles", 0, 1000, &window->line_cycles},
		{"forwarding", 0, 1000, &window->forwarding},
		{"renamed-forwarding", 0, 1000, &window->renamed_forwarding},
		{"blocked-forwarding", 0, 1000, &window->blocked_forwarding},
		{"repeat-start", 0, 1000, &window->repeat_start},
		{"repeat-line", 0, 1000, &window->repeat_line},
		{"misprediction", 0, 1000, &window->misprediction},
		{"btb-miss", 0, 1000, &core->latency.btb_miss},
		{"l1-btb-miss", 0, 1000, &core->latency.l1_btb_miss},
		{"path-target", 0, 1000, &core->latency.path_target},
		{"call-target", 0, 1000, &core->latency.call_target},
		{"return-target", 0, 1000, &core->latency.return_target},
		{"system-call", 0, 1000, &settings->crossing.system_call},
		{"system-return", 0, 1000, &settings->crossing.system_return},
		{"interrupt", 0, 1000, &settings->crossing.interrupt},
		{"interrupt-return", 0, 1000, &settings->crossing.interrupt_return},
		{"swap-base", 0, 1000, &settings->crossing.swap_base},
		{"l1i-miss", 0, 1000, &core->latency.l1i_miss},
		{"l1d-miss", 0, 1000, &core->latency.l1d_miss},
		{"l2-code-miss", 0, 1000, &core->latency.l2_code_miss},
		{"l2-data-miss", 0, 1000, &core->latency.l2_data_miss},
		{"itlb-miss", 0, 1000, &core->latency.itlb_miss},
		{"dtlb-miss", 0, 1000, &core->latency.dtlb_miss},
		{"itlb-walk", 0, 1000, &core->latency.itlb_walk},
		{"dtlb-walk", 0, 1000, &core->latency.dtlb_walk},
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		if (strcmp(name, tables[i].name) == 0)
			return read_table(value, tables[i].size);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (strcmp(name, numbers[i].name) == 0)
			return read_number(value, numbers[i].min, numbers[i].max,
					   numbers[i].number);
	if (strcmp(name, "line") == 0)
		return read_line(value, &core->line_bits);
	if (strcmp(name, "fetch-bytes") == 0)
		return read_line(value, &window->fetch_bits);
	if (strcmp(name, "decode-bytes") == 0)
		return read_line(value, &window->decode_bits);
	if (strcmp(name, "indirect") == 0)
		return read_indirect(value, &core->targets);
	if (strcmp(name, "path") == 0) {
		core->targets.path_returns = strcmp(value, "caller") == 0;
		return core->targets.path_returns || strcmp(value, "all") == 0;
	}
	if (strcmp(name, "direction") == 0)
		return read_direction(value, &core->direction);
	if (strcmp(name, "span") == 0) {
		settings->all = strcmp(value, "all") == 0;
		return settings->all || strcmp(value, "marks") == 0;
	}
	if (strcmp(name, "cpus") == 0) {
		settings->takes_turns = strcmp(value, "turns") == 0;
		return settings->takes_turns;
	}
	if (strcmp(name, "out") == 0)
		settings->out = value;
	else if (strcmp(name, "where") == 0)
		settings->where = value;
	else if (strcmp(name, "cpu") == 0)
		settings->cpu = value;
	else
		return false;
	return *value != '\0';
}

bool pmu_settings_read(struct pmu_settings *settings, int argc, char **argv)
{
	*settings = (struct pmu_settings){
		.kernel_text_page = 12,
		.kernel_data_page = 12,
		.slice = 1 << 20,
		.window = {.fetch_bits = 6, .fetch_operations = 8, .decode_bits = 6,
			   .decode_operations = 8, .predict_ahead = 1,
			   .renamed_forwarding = NEVER_RENAMED},
		.core = {.line_bits = 6, .direction = {.base_bits = 1, .table_bits = MAX_TABLES}},
	};
	for (int i = 0; i < argc; i++) {
		char name[24];
		const char *sign = strchr(argv[i], '=');
		const size_t length = sign != NULL ? (size_t)(sign - argv[i]) : 0;
		if (sign == NULL || length >= sizeof(name))
			return pmu_refuse("invalid argument", argv[i]);
		memcpy(name, argv[i], length);
		name[length] = '\0';
		if (!read_argument(settings, name, sign + 1))
			return pmu_refuse("invalid argument", argv[i]);
	}
	settings->window.line_bits = settings->core.line_bits;
	if (settings->out == NULL)
		return pmu_refuse("out=FILE is missing", NULL);
	if (settings->cpu == NULL)
		return pmu_refuse("cpu=NAME is missing", NULL);
	if (settings->takes_turns && settings->all)
		return pmu_refuse("cpus=turns requires marks: a booting kernel's CPUs look the same",
				  NULL);
	return true;
}
