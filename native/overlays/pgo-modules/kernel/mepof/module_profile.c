// SPDX-License-Identifier: GPL-2.0
#include <linux/string.h>
#include <linux/types.h>

#include "module_profile.h"

/*
 * raw_profile.c once more, for the sections of a module in place of vmlinux's. Compiled here a
 * second time, it stays what it is in kernels without modules.
 */
#define mepof_raw_profile_bound bound_of_module
#define mepof_raw_profile_write write_module
#include "profile.h"

static const struct module_sections *of;

#define __mepof_prf_data_start (of->data)
#define __mepof_prf_data_end (of->data_end)
#define __mepof_prf_cnts_start (of->counters)
#define __mepof_prf_cnts_end (of->counters_end)
#define __mepof_prf_bits_start (of->bitmap)
#define __mepof_prf_bits_end (of->bitmap_end)
#define __mepof_prf_names_start (of->names)
#define __mepof_prf_names_end (of->names_end)
/* Of nodes only the number matters, and that is not the module's. */
#define __mepof_prf_vnds_start 0
#define __mepof_prf_vnds_end most_nodes()

static size_t most_nodes(void)
{
	const struct function_data *data;
	size_t sites = 0;

	for (data = of->data; data < of->data_end; data++)
		sites += number_of_value_sites(data);
	return sites * VALUES_PER_SITE;
}

#include "raw_profile.c"

size_t module_profile_bound(const struct module_sections *sections)
{
	of = sections;
	return bound_of_module();
}

size_t module_profile_write(const struct module_sections *sections, void *buffer, size_t size)
{
	of = sections;
	return write_module(buffer, size);
}

void module_profile_reset(const struct module_sections *sections)
{
	memset(sections->counters, 0, sections->counters_end - sections->counters);
	if (sections->bitmap)
		memset(sections->bitmap, 0, sections->bitmap_end - sections->bitmap);
}

bool module_profile_take_up(const struct module_sections *sections, const void *raw, size_t size)
{
	size_t data_size = (char *)sections->data_end - (char *)sections->data;
	const struct raw_header *header = raw;
	const struct function_data *former = raw + sizeof(*header), *data;

	of = sections;
	if (size < sizeof(*header) + data_size + counters_size() ||
	    header->NumData != sections->data_end - sections->data)
		return false;
	for (data = sections->data; data < sections->data_end; data++, former++)
		if (data->NameRef != former->NameRef || data->FuncHash != former->FuncHash ||
		    data->NumCounters != former->NumCounters)
			return false;
	memcpy(sections->counters, former, counters_size());
	return true;
}
