/*
 * Plugins are written against one version of QEMU's plugin interface, and loaded by releases of QEMU
 * with others. What differs is here, in functions that have the names of QEMU's and are found first.
 *
 * From version 7 on (QEMU 11.1), a callback no longer gets the plugin's number, and gets the data that
 * was registered with it: here, the callback of the older interface.
 */
#define _GNU_SOURCE

#include "qemu_plugin_api.h"

#include <dlfcn.h>

#define WITHOUT_NUMBERS 7

static qemu_plugin_id_t plugin;
static qemu_plugin_udata_cb_t at_exit;

/* QEMU reads the version when the plugin is loaded. Only QEMU 11.0 and later can set the pc, and that
 * of 11.0 itself, version 6, is not supported. */
static __attribute__((constructor)) void choose_version(void)
{
	if (dlsym(RTLD_DEFAULT, "qemu_plugin_set_pc") != NULL)
		qemu_plugin_version = WITHOUT_NUMBERS;
}

/*
 * Registers a callback by QEMU's function of that name, which is there: QEMU has loaded a plugin of
 * this version. One that takes no data does not look at it.
 */
static void at_qemu(const char *name, qemu_plugin_id_t id, void *older, void *newer, void *data)
{
	void (*call)(qemu_plugin_id_t, void *, void *) = dlsym(RTLD_DEFAULT, name);

	plugin = id;
	call(id, qemu_plugin_version < WITHOUT_NUMBERS ? older : newer, data);
}

static void vcpu_begins(unsigned int index, void *older)
{
	((qemu_plugin_vcpu_simple_cb_t)older)(plugin, index);
}

static void translates(struct qemu_plugin_tb *tb, void *older)
{
	((qemu_plugin_vcpu_tb_trans_cb_t)older)(plugin, tb);
}

static void is_reset(void *older)
{
	((qemu_plugin_simple_cb_t)older)(plugin);
}

static void ends(void *userdata)
{
	at_exit(plugin, userdata);
}

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_simple_cb_t cb)
{
	at_qemu(__func__, id, cb, vcpu_begins, cb);
}

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_tb_trans_cb_t cb)
{
	at_qemu(__func__, id, cb, translates, cb);
}

void qemu_plugin_reset(qemu_plugin_id_t id, qemu_plugin_simple_cb_t cb)
{
	at_qemu(__func__, id, cb, is_reset, cb);
}

void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_plugin_udata_cb_t cb, void *userdata)
{
	at_exit = cb;
	at_qemu(__func__, id, cb, ends, userdata);
}
