// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/mepof/gcov:
 *   counts.tar       the counts of every object, as they are at the time of the open
 *   reset            write anything to set all counts to zero
 *   values_dropped   values that found no free node; a large figure asks for a larger pool
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/module.h>
#include <linux/vmalloc.h>

#include "counts.h"

struct snapshot {
	size_t size;
	char bytes[];
};

static int snapshot_open(struct inode *inode, struct file *file)
{
	size_t capacity = mepof_count_files_size();
	struct snapshot *snapshot = vmalloc(sizeof(*snapshot) + capacity);

	if (!snapshot)
		return -ENOMEM;
	snapshot->size = mepof_count_files_write(snapshot->bytes, capacity);
	if (!snapshot->size) {
		vfree(snapshot);
		return -EIO;
	}
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

static ssize_t reset_write(struct file *file, const char __user *from, size_t count,
			   loff_t *position)
{
	mepof_counters_reset();
	return count;
}

static const struct file_operations reset_operations = {
	.owner = THIS_MODULE,
	.write = reset_write,
	.llseek = noop_llseek,
};

static int values_dropped_get(void *unused, u64 *value)
{
	*value = mepof_values_dropped();
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(values_dropped_operations, values_dropped_get, NULL, "%llu\n");

static int __init mepof_profile_init(void)
{
	struct dentry *directory = debugfs_create_dir("gcov", debugfs_create_dir("mepof", NULL));

	debugfs_create_file("counts.tar", 0400, directory, NULL, &snapshot_operations);
	debugfs_create_file("reset", 0200, directory, NULL, &reset_operations);
	debugfs_create_file_unsafe("values_dropped", 0400, directory, NULL,
				   &values_dropped_operations);
	return 0;
}
late_initcall(mepof_profile_init);
