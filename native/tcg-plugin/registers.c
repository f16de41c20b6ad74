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
	for (unsigned i = 0; i < all->len; i++) {
		const qemu_plugin_reg_descriptor *descriptor =
			(const void *)(all->data + i * g_array_get_element_size(all));

		if (strcmp(descriptor->name, name) == 0)
			return descriptor->handle;
	}
	return NULL;
}

uint64_t register_value(struct qemu_plugin_register *handle)
{
	static _Thread_local GByteArray *bytes;
	uint64_t value = 0;

	if (bytes == NULL)
		bytes = g_byte_array_new();
	g_byte_array_set_size(bytes, 0);
	/* Its result has another type in later versions of the interface; a failure leaves no bytes. */
	qemu_plugin_read_register(handle, bytes);
	if (bytes->len > 0)
		memcpy(&value, bytes->data, bytes->len < sizeof(value) ? bytes->len : sizeof(value));
	return value;
}
