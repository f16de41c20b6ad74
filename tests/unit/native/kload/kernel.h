/* Stands in for what the file cases of kload include and call: a directory is the file systems. */
#ifndef KLOAD_KERNEL_H
#define KLOAD_KERNEL_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

typedef uint8_t u8;
typedef uint32_t u32;

#define __init
#define __initconst
#define ARRAY_SIZE(of) (sizeof(of) / sizeof((of)[0]))
#define min_t(type, a, b) ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define SZ_1K 1024
#define SZ_4K 4096
#define SZ_16K 16384
#define SZ_256K 262144
#define KERNEL_VERSION(a, b, c) ((a) << 16 | (b) << 8 | (c))
#define LINUX_VERSION_CODE KERNEL_VERSION(6, 12, 0)

#define PTR_ERR(pointer) ((int)(intptr_t)(pointer))
#define ERR_PTR(error) ((void *)(intptr_t)(error))
#define IS_ERR(pointer) ((uintptr_t)(pointer) >= (uintptr_t)-4095)
#define PTR_ERR_OR_ZERO(pointer) (IS_ERR(pointer) ? PTR_ERR(pointer) : 0)

#define GFP_KERNEL 0
#define kmalloc(size, flags) malloc(size)
#define kzalloc(size, flags) calloc(1, size)
#define kfree free

struct inode {
	off_t size;
};

struct address_space {
	struct inode *host;
};

struct dentry {
	struct inode inode;
	char path[4096];
};

struct path {
	int *mnt;
	struct dentry *dentry;
};

struct file {
	struct path f_path;
	struct address_space *f_mapping;
	struct address_space mapping;
	struct dentry dentry;
	int fd;
};

struct kstat {
	unsigned int mode;
};

struct file *filp_open(const char *path, int flags, int mode);
void __fput_sync(struct file *file);
ssize_t kernel_read(struct file *file, void *to, size_t size, loff_t *at);
ssize_t kernel_write(struct file *file, const void *from, size_t size, loff_t *at);
int vfs_fsync(struct file *file, int only_data);
int vfs_fadvise(struct file *file, loff_t from, loff_t size, int advice);
int create_pipe_files(struct file **ends, int flags);

#define LOOKUP_FOLLOW 0
#define AT_STATX_SYNC_AS_STAT 0
int kern_path(const char *name, int flags, struct path *found);
int vfs_getattr(const struct path *path, struct kstat *found, int mask, int flags);
#define path_put(path) free((path)->dentry)

#define I_MUTEX_PARENT 0
#define dget(of) (of)
#define dget_parent(of) (of)
#define dput(of) ((void)(of))
#define d_inode(of) (&(of)->inode)
#define i_size_read(of) ((of)->size)
#define inode_lock_nested(of, how) ((void)(of))
#define inode_unlock(of) ((void)(of))
#define mnt_want_write(of) 0
#define mnt_drop_write(of) ((void)(of))
#define mnt_idmap(of) (of)
int vfs_unlink(int *map, struct inode *parent, struct dentry *dentry, void *unused);

#define MKDEV(major, minor) ((major) << 20 | (minor))
#define RAMDISK_MAJOR 1
#define new_encode_dev(device) (device)
#define MS_NOATIME 1024
int init_mkdir(const char *path, int mode);
int init_mknod(const char *path, unsigned int mode, unsigned int device);
int init_mount(const char *device, const char *path, const char *type, unsigned long flags,
	       void *data);

#endif
