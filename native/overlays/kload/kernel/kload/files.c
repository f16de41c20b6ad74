// SPDX-License-Identifier: GPL-2.0
/* The page cache, names, and pipes, on a tmpfs of our own; files of ext4 on a disk in memory. */
#include <linux/err.h>
#include <linux/fadvise.h>
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
#include <linux/version.h>

#include "kload.h"

#define DATA KLOAD_DIRECTORY "/data"
#define DEEP KLOAD_DIRECTORY "/one/two/three/file"
#define FRESH KLOAD_DIRECTORY "/one/fresh"
#define FILE_SIZE SZ_256K
#define PIPE_BYTES 512

static struct file *data;
static struct file *pipe_ends[2];
/* What is written; in the cases of a file, what is read comes behind it. */
static char *buffer;
#define READ_INTO (buffer + SZ_16K)
/* How much of the file a round writes over, in pieces of what size. */
static size_t written, piece;

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

/* Fills a file with 16 KiB, over and over. */
static int open_file(const char *path)
{
	loff_t at = 0;
	u32 i;

	buffer = kmalloc(2 * SZ_16K, GFP_KERNEL);
	if (!buffer)
		return -ENOMEM;
	for (i = 0; i < SZ_16K / sizeof(i); i++)
		((u32 *)buffer)[i] = i * 2654435761u;
	written = 0;
	data = filp_open(path, O_CREAT | O_RDWR, 0600);
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

static int open_data(void)
{
	return open_file(DATA);
}

/* Reads the whole file, and compares it with what was written. */
static int check_data(u32 *sum)
{
	loff_t at = 0;
	size_t i;

	while (at < FILE_SIZE) {
		const size_t before = at;

		if (kernel_read(data, READ_INTO, SZ_16K, &at) != SZ_16K)
			return -EIO;
		for (i = 0; i < SZ_16K; i++)
			if (READ_INTO[i] != buffer[before + i < written ? (before + i) % piece : i])
				return -EBADMSG;
		*sum = *sum * 31 + kload_checksum(READ_INTO, SZ_16K);
	}
	return 0;
}

static int read_pages(unsigned int batch, size_t size)
{
	loff_t at = 0;

	while (batch--) {
		if (kernel_read(data, READ_INTO, size, &at) != size)
			return -EIO;
		if (at >= FILE_SIZE)
			at = 0;
	}
	return 0;
}

static int write_pages(unsigned int batch, size_t size)
{
	loff_t at = 0;

	piece = size;
	written = min_t(size_t, batch * size, FILE_SIZE);
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

static int unlink_in(const struct path *path, struct inode *parent)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	return vfs_unlink(mnt_idmap(path->mnt), parent, path->dentry, NULL);
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 12, 0)
	return vfs_unlink(mnt_user_ns(path->mnt), parent, path->dentry, NULL);
#else
	return vfs_unlink(parent, path->dentry, NULL);
#endif
}

static int unlink_file(struct file *file)
{
	/* As a lookup would: d_delete() takes the inode from a dentry of which this is the only user. */
	struct dentry *dentry = dget(file->f_path.dentry);
	struct dentry *parent = dget_parent(dentry);
	int error = mnt_want_write(file->f_path.mnt);

	if (!error) {
		inode_lock_nested(d_inode(parent), I_MUTEX_PARENT);
		error = unlink_in(&file->f_path, d_inode(parent));
		inode_unlock(d_inode(parent));
		mnt_drop_write(file->f_path.mnt);
	}
	dput(parent);
	dput(dentry);
	return error;
}

/* Creates and unlinks a file, into which so much is written and synced. */
static int make_file(const char *path, size_t size)
{
	struct file *file = filp_open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	loff_t at = 0;
	int error = 0, unlinked;

	if (IS_ERR(file))
		return PTR_ERR(file);
	if (size > 0)
		error = kernel_write(file, buffer, size, &at) == size ? vfs_fsync(file, 0) : -EIO;
	unlinked = unlink_file(file);
	__fput_sync(file);
	return error ?: unlinked;
}

static int make_files(unsigned int batch, const char *path, size_t size)
{
	int error = 0;

	while (!error && batch--)
		error = make_file(path, size);
	return error;
}

static int create_unlink(unsigned int batch)
{
	return make_files(batch, FRESH, 0);
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

#ifdef CONFIG_KLOAD_DISK
#define DISK_DATA KLOAD_EXT4 "/data"
#define DISK_FRESH KLOAD_EXT4 "/fresh"

/* Has the device alone hold the file. */
static int drop_pages(void)
{
	int error = vfs_fsync(data, 0);

	return error ?: vfs_fadvise(data, 0, 0, POSIX_FADV_DONTNEED);
}

static int open_disk_data(void)
{
	int error = open_file(DISK_DATA);

	if (error)
		return error;
	error = vfs_fsync(data, 0);
	if (error)
		close_data();
	return error;
}

static int check_disk_data(u32 *sum)
{
	int error = drop_pages();

	return error ?: check_data(sum);
}

static int read_device(unsigned int batch)
{
	int error = drop_pages();

	return error ?: read_16k(batch);
}

static int write_sync(unsigned int batch)
{
	loff_t at = 0;
	int error = 0;

	piece = SZ_1K;
	written = batch * SZ_1K;
	while (!error && batch--) {
		if (kernel_write(data, buffer, SZ_1K, &at) != SZ_1K)
			return -EIO;
		error = vfs_fsync(data, 0);
	}
	return error;
}

static int create_unlink_disk(unsigned int batch)
{
	return make_files(batch, DISK_FRESH, 0);
}

static int make_files_disk(unsigned int batch)
{
	return make_files(batch, DISK_FRESH, SZ_16K);
}
#endif

const struct kload_case kload_files[] = {
	{ "read-64", 500, open_data, read_64, close_data, check_data },
	{ "read-1k", 500, open_data, read_1k, close_data, check_data },
	{ "read-16k", 100, open_data, read_16k, close_data, check_data },
	{ "write-64", 500, open_data, write_64, close_data, check_data },
	{ "write-1k", 500, open_data, write_1k, close_data, check_data },
	{ "write-16k", 100, open_data, write_16k, close_data, check_data },
	{ "lookup", 500, NULL, look_up, NULL },
	{ "stat", 500, NULL, get_attributes, NULL },
	{ "open-close", 200, NULL, open_close, NULL },
	{ "create-unlink", 100, NULL, create_unlink, NULL },
	{ "pipe-512", 500, open_pipe, pass_pipe, close_pipe },
#ifdef CONFIG_KLOAD_DISK
	{ "ext4-read-1k", 500, open_disk_data, read_1k, close_data, check_disk_data },
	{ "ext4-read-16k", 100, open_disk_data, read_16k, close_data, check_disk_data },
	{ "ext4-read-device", 16, open_disk_data, read_device, close_data, check_disk_data },
	{ "ext4-write-1k", 500, open_disk_data, write_1k, close_data, check_disk_data },
	{ "ext4-write-16k", 100, open_disk_data, write_16k, close_data, check_disk_data },
	{ "ext4-fsync", 20, open_disk_data, write_sync, close_data, check_disk_data },
	{ "ext4-create-unlink", 50, NULL, create_unlink_disk, NULL },
	{ "ext4-new-file", 5, open_disk_data, make_files_disk, close_data, check_disk_data },
#endif
	{ }
};
