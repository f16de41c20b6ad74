// SPDX-License-Identifier: GPL-2.0
/*
 * The counts of modules, in /sys/kernel/debug/mepof/pgo/modules.profraw: the raw profile of each,
 * one after the other, which llvm-profdata reads as one file.
 *
 * A module's counters are in its own memory, so its raw profile is kept when it is unloaded. If it
 * is loaded again, it goes on counting from there. The nodes of its value profiles come from
 * vmlinux's pool, as module_profile.h explains.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "module_profile.h"
#include "modules.h"

/*
 * A module, in one of three states: found, while it may still fail to load (neither counts nor
 * raw); counting, from when its code may run (counts); unloaded (raw).
 */
struct profiled_module {
	struct list_head list;
	char name[MODULE_NAME_LEN];
	const struct module *module;
	struct module_sections sections;
	bool counts;
	size_t size;
	char *raw;
};

static DEFINE_MUTEX(lock);
static LIST_HEAD(modules);

static void forget(struct profiled_module *profiled)
{
	list_del(&profiled->list);
	vfree(profiled->raw);
	kfree(profiled);
}

static struct profiled_module *profiled_of(const struct module *module)
{
	struct profiled_module *profiled;

	list_for_each_entry(profiled, &modules, list)
		if (profiled->module == module)
			return profiled;
	return NULL;
}

static void note_section(struct module_sections *found, const char *name, const Elf_Shdr *header)
{
	char *start = (char *)header->sh_addr, *end = start + header->sh_size;

	if (!strcmp(name, "__llvm_prf_data")) {
		found->data = (struct function_data *)start;
		found->data_end = (struct function_data *)end;
	} else if (!strcmp(name, "__llvm_prf_cnts")) {
		found->counters = start;
		found->counters_end = end;
	} else if (!strcmp(name, "__llvm_prf_bits")) {
		found->bitmap = start;
		found->bitmap_end = end;
	} else if (!strcmp(name, "__llvm_prf_names")) {
		found->names = start;
		found->names_end = end;
	}
}

void mepof_module_found(const struct module *module, unsigned int sections,
			const Elf_Shdr *headers, const char *names)
{
	struct profiled_module *profiled, *earlier;
	unsigned int i;

	profiled = kzalloc(sizeof(*profiled), GFP_KERNEL);
	if (!profiled) {
		pr_warn("mepof: %s is not counted: out of memory\n", module->name);
		return;
	}
	for (i = 1; i < sections; i++)
		if (headers[i].sh_flags & SHF_ALLOC)
			note_section(&profiled->sections, names + headers[i].sh_name, &headers[i]);
	if (!profiled->sections.data) {
		kfree(profiled); /* none of its files takes instrumentation */
		return;
	}
	strscpy(profiled->name, module->name, sizeof(profiled->name));
	profiled->module = module;
	mutex_lock(&lock);
	/* One that failed to load before its code could run, and whose memory was used again. */
	earlier = profiled_of(module);
	if (earlier)
		forget(earlier);
	list_add_tail(&profiled->list, &modules);
	mutex_unlock(&lock);
}

/* Go on from the counts that this module had when it was unloaded, if it is of the same build. */
static void take_up(struct profiled_module *profiled)
{
	struct profiled_module *former, *next;

	list_for_each_entry_safe(former, next, &modules, list) {
		if (!former->raw || strcmp(former->name, profiled->name))
			continue;
		if (module_profile_take_up(&profiled->sections, former->raw, former->size)) {
			forget(former);
			return;
		}
	}
}

static void keep(struct profiled_module *profiled)
{
	size_t bound = module_profile_bound(&profiled->sections);

	profiled->raw = vzalloc(bound);
	if (profiled->raw)
		profiled->size = module_profile_write(&profiled->sections, profiled->raw, bound);
	profiled->module = NULL;
	profiled->counts = false;
	if (profiled->size)
		return;
	pr_warn("mepof: the counts of %s are lost: out of memory\n", profiled->name);
	forget(profiled);
}

static int module_changed(struct notifier_block *block, unsigned long state, void *data)
{
	struct profiled_module *profiled;

	mutex_lock(&lock);
	profiled = profiled_of(data);
	if (profiled && state == MODULE_STATE_COMING) {
		take_up(profiled);
		profiled->counts = true;
	} else if (profiled && state == MODULE_STATE_GOING) {
		keep(profiled);
	}
	mutex_unlock(&lock);
	return NOTIFY_OK;
}

static struct notifier_block notifier = { .notifier_call = module_changed };

void mepof_modules_reset(void)
{
	struct profiled_module *profiled, *next;

	mutex_lock(&lock);
	list_for_each_entry_safe(profiled, next, &modules, list) {
		if (profiled->raw)
			forget(profiled);
		else if (profiled->counts)
			module_profile_reset(&profiled->sections);
	}
	mutex_unlock(&lock);
}

struct snapshot {
	size_t size;
	char bytes[];
};

static size_t bound_of_all(void)
{
	const struct profiled_module *profiled;
	size_t bound = 0;

	list_for_each_entry(profiled, &modules, list) {
		if (profiled->raw)
			bound += profiled->size;
		else if (profiled->counts)
			bound += module_profile_bound(&profiled->sections);
	}
	return bound;
}

static struct snapshot *snapshot_of_all(void)
{
	const struct profiled_module *profiled;
	size_t bound = bound_of_all();
	struct snapshot *snapshot = vzalloc(sizeof(*snapshot) + bound);

	if (!snapshot)
		return ERR_PTR(-ENOMEM);
	list_for_each_entry(profiled, &modules, list) {
		char *at = snapshot->bytes + snapshot->size;
		size_t size = 0;

		if (profiled->raw) {
			size = profiled->size;
			memcpy(at, profiled->raw, size);
		} else if (profiled->counts) {
			size = module_profile_write(&profiled->sections, at,
						    bound - snapshot->size);
			if (!size) {
				vfree(snapshot);
				return ERR_PTR(-EIO);
			}
		}
		snapshot->size += size;
	}
	return snapshot;
}

static int snapshot_open(struct inode *inode, struct file *file)
{
	struct snapshot *snapshot;

	mutex_lock(&lock);
	snapshot = snapshot_of_all();
	mutex_unlock(&lock);
	if (IS_ERR(snapshot))
		return PTR_ERR(snapshot);
	file->private_data = snapshot;
	return 0;
}

static ssize_t snapshot_read(struct file *file, char __user *to, size_t count, loff_t *position)
{
	struct snapshot *snapshot = file->private_data;

	return simple_read_from_buffer(to, count, position, snapshot->bytes, snapshot->size);
}

static int snapshot_release(struct inode *inode, struct file *file)
{
	vfree(file->private_data);
	return 0;
}

static const struct file_operations snapshot_operations = {
	.owner = THIS_MODULE,
	.open = snapshot_open,
	.read = snapshot_read,
	.llseek = default_llseek,
	.release = snapshot_release,
};

/* Before any module can be loaded: the initramfs is unpacked as a rootfs_initcall. */
static int __init mepof_modules_watch(void)
{
	return register_module_notifier(&notifier);
}
core_initcall(mepof_modules_watch);

static int __init mepof_modules_init(void)
{
	struct dentry *mepof = debugfs_lookup("mepof", NULL);
	struct dentry *directory = mepof ? debugfs_lookup("pgo", mepof) : NULL;

	if (directory)
		debugfs_create_file("modules.profraw", 0400, directory, NULL, &snapshot_operations);
	dput(directory);
	dput(mepof);
	return 0;
}
/* After vmlinux's, which makes the directory: the Makefile lists it first. */
late_initcall(mepof_modules_init);
