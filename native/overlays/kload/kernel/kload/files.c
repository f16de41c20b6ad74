// SPDX-License-Identifier: GPL-2.0
/* The page cache, names, and pipes, on a tmpfs of our own. */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/init_syscalls.h>
#include <linux/mount.h>
#include <linux/namei.h>
#include <linux/sizes.h>
#include <linux/pipe_fs_i.h>
#include <linux/slab.h>
#include <linux/stat.h>
#include <linux/string.h>

#include "kload.h"

#define DATA KLOAD_DIRECTORY "/data"
#define DEEP KLOAD_DIRECTORY "/one/two/three/file"
#define FRESH KLOAD_DIRECTORY "/one/fresh"
#define FILE_SIZE SZ_256K
#define PIPE_BYTES 512

static struct file *data;
static struct file *pipe_ends[2];
static char *buffer;

int __init kload_files_init(void)
{
	static const char * const directories[] __initconst = {
		KLOAD_DIRECTORY "/one", KLOAD_DIRECTORY "/one/two", KLOAD_DIRECTORY "/one/two/three",
	};
	struct file *file;
	int i, error = init_mkdir(KLOAD_DIRECTORY, 0700);

	if (!error)
		error = init_mount("tmpfs", KLOAD_DIRECTORY, "tmpfs", 0, NULL);
	for (i = 0; !error && i < ARRAY_SIZE(directories); i++)
		error = init_mkdir(directories[i], 0700);
	if (error)
		return error;
	file = filp_open(DEEP, O_CREAT | O_RDWR, 0600);
	if (IS_ERR(file))
		return PTR_ERR(file);
	__fput_sync(file);
	return 0;
}

static void close_data(void)
{
	__fput_sync(data);
	kfree(buffer);
}

static int open_data(void)
{
	loff_t at = 0;

	buffer = kzalloc(SZ_16K, GFP_KERNEL);
	if (!buffer)
		return -ENOMEM;
	data = filp_open(DATA, O_CREAT | O_RDWR, 0600);
	if (IS_ERR(data)) {
		kfree(buffer);
		return PTR_ERR(data);
	}
	while (at < FILE_SIZE) {
		if (kernel_write(data, buffer, SZ_16K, &at) != SZ_16K) {
			close_data();
			return -EIO;
		}
	}
	return 0;
}

static int read_pages(unsigned int batch, size_t size)
{
	loff_t at = 0;

	while (batch--) {
		if (kernel_read(data, buffer, size, &at) != size)
			return -EIO;
		if (at >= FILE_SIZE)
			at = 0;
	}
	return 0;
}

static int write_pages(unsigned int batch, size_t size)
{
	loff_t at = 0;

	while (batch--) {
		if (kernel_write(data, buffer, size, &at) != size)
			return -EIO;
		if (at >= FILE_SIZE)
			at = 0;
	}
	return 0;
}

static int read_64(unsigned int batch)
{
	return read_pages(batch, 64);
}

static int read_1k(unsigned int batch)
{
	return read_pages(batch, SZ_1K);
}

static int read_16k(unsigned int batch)
{
	return read_pages(batch, SZ_16K);
}

static int write_64(unsigned int batch)
{
	return write_pages(batch, 64);
}

static int write_1k(unsigned int batch)
{
	return write_pages(batch, SZ_1K);
}

static int write_16k(unsigned int batch)
{
	return write_pages(batch, SZ_16K);
}

static int look_up(unsigned int batch)
{
	while (batch--) {
		struct path path;
		int error = kern_path(DEEP, LOOKUP_FOLLOW, &path);

		if (error)
			return error;
		path_put(&path);
	}
	return 0;
}

static int get_attributes(unsigned int batch)
{
	while (batch--) {
		struct path path;
		struct kstat stat;
		int error = kern_path(DEEP, LOOKUP_FOLLOW, &path);

		if (error)
			return error;
		error = vfs_getattr(&path, &stat, STATX_BASIC_STATS, AT_STATX_SYNC_AS_STAT);
		path_put(&path);
		if (error)
			return error;
		if (!S_ISREG(stat.mode))
			return -EIO;
	}
	return 0;
}

static int open_close(unsigned int batch)
{
	while (batch--) {
		struct file *file = filp_open(DEEP, O_RDONLY, 0);

		if (IS_ERR(file))
			return PTR_ERR(file);
		/* A thread's fput() would leave the work to a work queue. */
		__fput_sync(file);
	}
	return 0;
}

static int unlink_file(struct file *file)
{
	/* As a lookup would: d_delete() takes the inode from a dentry of which this is the only user. */
	struct dentry *dentry = dget(file->f_path.dentry);
	struct dentry *parent = dget_parent(dentry);
	int error = mnt_want_write(file->f_path.mnt);

	if (!error) {
		inode_lock_nested(d_inode(parent), I_MUTEX_PARENT);
		error = vfs_unlink(mnt_idmap(file->f_path.mnt), d_inode(parent), dentry, NULL);
		inode_unlock(d_inode(parent));
		mnt_drop_write(file->f_path.mnt);
	}
	dput(parent);
	dput(dentry);
	return error;
}

static int create_unlink(unsigned int batch)
{
	while (batch--) {
		struct file *file = filp_open(FRESH, O_CREAT | O_EXCL | O_WRONLY, 0600);
		int error;

		if (IS_ERR(file))
			return PTR_ERR(file);
		error = unlink_file(file);
		__fput_sync(file);
		if (error)
			return error;
	}
	return 0;
}

static int open_pipe(void)
{
	int error;

	buffer = kzalloc(PIPE_BYTES, GFP_KERNEL);
	if (!buffer)
		return -ENOMEM;
	error = create_pipe_files(pipe_ends, 0);
	if (error)
		kfree(buffer);
	return error;
}

static int pass_pipe(unsigned int batch)
{
	while (batch--) {
		if (kernel_write(pipe_ends[1], buffer, PIPE_BYTES, NULL) != PIPE_BYTES)
			return -EIO;
		if (kernel_read(pipe_ends[0], buffer, PIPE_BYTES, NULL) != PIPE_BYTES)
			return -EIO;
	}
	return 0;
}

static void close_pipe(void)
{
	__fput_sync(pipe_ends[1]);
	__fput_sync(pipe_ends[0]);
	kfree(buffer);
}

const struct kload_case kload_files[] = {
	{ "read-64", 500, open_data, read_64, close_data },
	{ "read-1k", 500, open_data, read_1k, close_data },
	{ "read-16k", 100, open_data, read_16k, close_data },
	{ "write-64", 500, open_data, write_64, close_data },
	{ "write-1k", 500, open_data, write_1k, close_data },
	{ "write-16k", 100, open_data, write_16k, close_data },
	{ "lookup", 500, NULL, look_up, NULL },
	{ "stat", 500, NULL, get_attributes, NULL },
	{ "open-close", 200, NULL, open_close, NULL },
	{ "create-unlink", 100, NULL, create_unlink, NULL },
	{ "pipe-512", 500, open_pipe, pass_pipe, close_pipe },
	{ }
};
