#include "registers.h"

#include <stddef.h>
#include <string.h>

#include "qemu_register_api.h"

struct qemu_plugin_register *register_named(const char *name)
{
	/* Of qemu_plugin_reg_descriptor. */
	static GArray *all;

	if (all == NULL)
		all = qemu_plugin_get_registers();
	const qemu_plugin_reg_descriptor *descriptors = (const void *)all->data;
	for (unsigned i = 0; i < all->len; i++)
		if (strcmp(descriptors[i].name, name) == 0)
			return descriptors[i].handle;
	return NULL;
}

uint64_t register_value(struct qemu_plugin_register *handle)
{
	static _Thread_local GByteArray *bytes;
	uint64_t value = 0;

	if (bytes == NULL)
		bytes = g_byte_array_new();
	g_byte_array_set_size(bytes, 0);
	if (qemu_plugin_read_register(handle, bytes) > 0)
		memcpy(&value, bytes->data, bytes->len < sizeof(value) ? bytes->len : sizeof(value));
	return value;
}
