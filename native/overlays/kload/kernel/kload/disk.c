// SPDX-License-Identifier: GPL-2.0
/* An ext4 on the first disk in memory (brd), as mke2fs makes it. */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/init_syscalls.h>
#include <linux/kdev_t.h>
#include <linux/major.h>
#include <linux/mount.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/stat.h>
#include <linux/string.h>
#include <uapi/linux/mount.h>

#include "kload.h"

#define DEVICE KLOAD_DIRECTORY "/disk"

/* Adjacent bytes of the file system, at most a block. */
struct run {
	u32 at, size;
	const char *bytes;
};

#include "blocks.h"

static int __init write_runs(struct file *device, const char *ones)
{
	unsigned int i;

	if (i_size_read(device->f_mapping->host) < DISK_BYTES)
		return -ENOSPC;
	for (i = 0; i < ARRAY_SIZE(runs); i++) {
		loff_t at = runs[i].at;

		if (kernel_write(device, runs[i].bytes ?: ones, runs[i].size, &at) != runs[i].size)
			return -EIO;
	}
	return vfs_fsync(device, 0);
}

static int __init lay_out(void)
{
	struct file *device;
	char *ones = kmalloc(SZ_4K, GFP_KERNEL);
	int error;

	if (!ones)
		return -ENOMEM;
	memset(ones, 0xff, SZ_4K);
	device = filp_open(DEVICE, O_RDWR, 0);
	error = PTR_ERR_OR_ZERO(device);
	if (!error) {
		error = write_runs(device, ones);
		__fput_sync(device);
	}
	kfree(ones);
	return error;
}

int __init kload_disk_init(void)
{
	int error = init_mknod(DEVICE, S_IFBLK | 0600, new_encode_dev(MKDEV(RAMDISK_MAJOR, 0)));

	return error ?: lay_out() ?: init_mkdir(KLOAD_EXT4, 0700) ?:
	       init_mount(DEVICE, KLOAD_EXT4, "ext4", MS_NOATIME, NULL);
}
