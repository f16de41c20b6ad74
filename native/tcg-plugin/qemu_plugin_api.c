/*
 * Plugins are written against one version of QEMU's plugin interface, and loaded by releases of QEMU
 * with others. What differs is here, in functions that have the names of QEMU's and are found first.
 *
 * From version 7 on (QEMU 11.1), a callback no longer gets the plugin's number, and gets what was
 * registered with it: here, the callback of the older interface.
 */
#define _GNU_SOURCE

#include "qemu_plugin_api.h"

#include <dlfcn.h>

#define WITHOUT_NUMBERS 7

static qemu_plugin_id_t plugin;
static qemu_plugin_udata_cb_t at_exit;
static void *at_exit_data;

typedef void vcpu_with_data(unsigned int index, void *older);
typedef void tb_with_data(struct qemu_plugin_tb *tb, void *older);
typedef void with_data(void *older);

/* QEMU reads the version when the plugin is loaded. Only QEMU 11.0 and later can set the pc, and that
 * of 11.0 itself, version 6, is not supported. */
static __attribute__((constructor)) void choose_version(void)
{
	if (dlsym(RTLD_DEFAULT, "qemu_plugin_set_pc") != NULL)
		qemu_plugin_version = WITHOUT_NUMBERS;
}

/* QEMU's function of that name. It is there: QEMU has loaded a plugin of this version. */
static void *of_qemu(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
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

static void ends(void *unused)
{
	(void)unused;
	at_exit(plugin, at_exit_data);
}

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_simple_cb_t cb)
{
	void *call = of_qemu(__func__);

	plugin = id;
	if (qemu_plugin_version < WITHOUT_NUMBERS)
		((void (*)(qemu_plugin_id_t, qemu_plugin_vcpu_simple_cb_t))call)(id, cb);
	else
		((void (*)(qemu_plugin_id_t, vcpu_with_data *, void *))call)(id, vcpu_begins, cb);
}

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_tb_trans_cb_t cb)
{
	void *call = of_qemu(__func__);

	plugin = id;
	if (qemu_plugin_version < WITHOUT_NUMBERS)
		((void (*)(qemu_plugin_id_t, qemu_plugin_vcpu_tb_trans_cb_t))call)(id, cb);
	else
		((void (*)(qemu_plugin_id_t, tb_with_data *, void *))call)(id, translates, cb);
}

void qemu_plugin_reset(qemu_plugin_id_t id, qemu_plugin_simple_cb_t cb)
{
	void *call = of_qemu(__func__);

	plugin = id;
	if (qemu_plugin_version < WITHOUT_NUMBERS)
		((void (*)(qemu_plugin_id_t, qemu_plugin_simple_cb_t))call)(id, cb);
	else
		((void (*)(qemu_plugin_id_t, with_data *, void *))call)(id, is_reset, cb);
}

void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_plugin_udata_cb_t cb, void *userdata)
{
	void *call = of_qemu(__func__);

	plugin = id;
	at_exit = cb;
	at_exit_data = userdata;
	if (qemu_plugin_version < WITHOUT_NUMBERS)
		((void (*)(qemu_plugin_id_t, qemu_plugin_udata_cb_t, void *))call)(id, cb, userdata);
	else
		((void (*)(qemu_plugin_id_t, with_data *, void *))call)(id, ends, NULL);
}
