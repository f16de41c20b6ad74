/* A plugin that says how it is called. */
#include "qemu_plugin_api.h"

#include <stdio.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

static void begins(qemu_plugin_id_t id, unsigned int index)
{
	printf("vCPU %u of %d begins\n", index, (int)id);
}

static void translates(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	printf("%d translates %p\n", (int)id, (void *)block);
}

static void turns(qemu_plugin_id_t id)
{
	printf("%d is reset\n", (int)id);
}

static void ends(qemu_plugin_id_t id, void *word)
{
	printf("%d ends with %s\n", (int)id, (const char *)word);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
					   char **argv)
{
	(void)info;
	(void)argc;
	(void)argv;
	qemu_plugin_register_vcpu_init_cb(id, begins);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translates);
	qemu_plugin_reset(id, turns);
	qemu_plugin_register_atexit_cb(id, ends, "a word");
	return 0;
}
