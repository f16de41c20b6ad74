/*
 * What our plugins use of QEMU's plugin interface to read the guest's registers. Names and types are
 * QEMU's ("QEMU TCG Plugins" in its developer manual) and, for the arrays, GLib's; QEMU links GLib.
 */
#ifndef MEPOF_QEMU_REGISTER_API_H
#define MEPOF_QEMU_REGISTER_API_H

#include <stdint.h>

struct qemu_plugin_register;

/* Later versions of the interface have more members. */
typedef struct {
	struct qemu_plugin_register *handle;
	const char *name;
	const char *feature;
} qemu_plugin_reg_descriptor;

typedef struct {
	char *data;
	unsigned int len;
} GArray;

typedef struct {
	uint8_t *data;
	unsigned int len;
} GByteArray;

GArray *qemu_plugin_get_registers(void);
unsigned int g_array_get_element_size(GArray *array);
int qemu_plugin_read_register(struct qemu_plugin_register *handle, GByteArray *buf);
GByteArray *g_byte_array_new(void);
GByteArray *g_byte_array_set_size(GByteArray *array, unsigned int length);

#endif
