/* What loads a plugin as a QEMU with version INTERFACE of the plugin interface does. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#define ID 42
#define INDEX 3
#define BLOCK ((void *)0xb10c)

#if INTERFACE < 7
#define CALL(cb, ...) ((void (*)())(cb).function)(ID, ##__VA_ARGS__)
#define CALL_WITH(cb) ((void (*)())(cb).function)((uint64_t)ID, (cb).data)
#else
#define CALL(cb, ...) ((void (*)())(cb).function)(__VA_ARGS__ __VA_OPT__(, ) (cb).data)
#define CALL_WITH(cb) ((void (*)())(cb).function)((cb).data)
void qemu_plugin_set_pc(uint64_t pc)
{
	(void)pc;
}
#endif

static struct callback {
	void *function, *data;
} begins, translates, resets, ends;

static void keep(uint64_t id, struct callback *callback, void *function, void *data)
{
	if (id != ID)
		printf("registered as %d\n", (int)id);
	*callback = (struct callback){function, data};
}

void qemu_plugin_register_vcpu_init_cb(uint64_t id, void *function, void *data)
{
	keep(id, &begins, function, data);
}

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void *function, void *data)
{
	keep(id, &translates, function, data);
}

void qemu_plugin_reset(uint64_t id, void *function, void *data)
{
	keep(id, &resets, function, data);
}

void qemu_plugin_register_atexit_cb(uint64_t id, void *function, void *data)
{
	keep(id, &ends, function, data);
}

int main(int argc, char **argv)
{
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int *version = plugin ? dlsym(plugin, "qemu_plugin_version") : NULL;
	int (*install)() = plugin ? dlsym(plugin, "qemu_plugin_install") : NULL;

	if (version == NULL || install == NULL)
		return fprintf(stderr, "%s\n", dlerror()), 1;
	printf("version %d\n", *version);
	install((uint64_t)ID, NULL, 0, NULL);
	CALL(begins, INDEX);
	CALL(translates, BLOCK);
	CALL(resets);
	CALL_WITH(ends);
	return 0;
}
