#include "turns.h"

#include <stdio.h>
#include <stdlib.h>

#include "registers.h"

static const char *plugin;
static const struct instruction_set *instructions;
static unsigned int vcpus;

static struct qemu_plugin_register *registers[CPU_BASES];
static uint64_t bases[MAX_TURNS];
static unsigned int known;

static void die(const char *what, const char *name)
{
	fprintf(stderr, "%s: cpus=turns: %s%s\n", plugin, what, name);
	exit(1);
}

void turns_open(const char *name, const struct instruction_set *set, unsigned int count)
{
	plugin = name;
	instructions = set;
	vcpus = count;
	if (count > MAX_TURNS)
		die("there are too many CPUs", "");
}

static void find_registers(void)
{
	for (size_t i = 0; i < CPU_BASES && instructions->cpu_bases[i] != NULL; i++) {
		registers[i] = register_named(instructions->cpu_bases[i]);
		if (registers[i] == NULL)
			die("QEMU does not show the register ", instructions->cpu_bases[i]);
	}
}

static uint64_t base(void)
{
	uint64_t value = 0;

	if (registers[0] == NULL)
		find_registers();
	for (size_t i = 0; i < CPU_BASES && registers[i] != NULL; i++) {
		value = register_value(registers[i]);
		if (is_kernel(instructions, value))
			break;
	}
	return value;
}

unsigned int turns_vcpu(void)
{
	static unsigned int last;
	const uint64_t here = base();

	if (last < known && bases[last] == here)
		return last;
	for (last = 0; last < known; last++)
		if (bases[last] == here)
			return last;
	if (known == vcpus)
		die("the kernel has data of more CPUs than there are", "");
	bases[known++] = here;
	return last;
}
