/*
 * Runs the file cases of kload as a user program.
 *
 *   run MEBIBYTES   with a disk of that size, in the file kload/disk of the current directory; each
 *                   case prints its name and the sum of what it left, or an error
 *
 * With FLIP=CASE in the environment, the file has another byte when that case is checked.
 */
#include "kernel.h"

#include <stdio.h>

#include "kload.h"

static off_t disk_size;

/* Adler-32, as memory.c has it. */
u32 kload_checksum(const char *data, size_t size)
{
	u32 low = 1, high = 0;

	while (size--) {
		low = (low + (u8)*data++) % 65521;
		high = (high + low) % 65521;
	}
	return high << 16 | low;
}

static struct file *file_of(int fd, const char *path)
{
	struct file *file = calloc(1, sizeof(*file));
	struct stat now;

	fstat(fd, &now);
	file->fd = fd;
	snprintf(file->dentry.path, sizeof(file->dentry.path), "%s", path);
	file->dentry.inode.size = now.st_size;
	file->mapping.host = &file->dentry.inode;
	file->f_mapping = &file->mapping;
	file->f_path.dentry = &file->dentry;
	return file;
}

struct file *filp_open(const char *path, int flags, int mode)
{
	const int fd = open(path + 1, flags, mode);

	return fd < 0 ? ERR_PTR(-errno) : file_of(fd, path + 1);
}

void __fput_sync(struct file *file)
{
	close(file->fd);
	free(file);
}

ssize_t kernel_read(struct file *file, void *to, size_t size, loff_t *at)
{
	const ssize_t got = at ? pread(file->fd, to, size, *at) : read(file->fd, to, size);

	if (at && got > 0)
		*at += got;
	return got;
}

ssize_t kernel_write(struct file *file, const void *from, size_t size, loff_t *at)
{
	const ssize_t put = at ? pwrite(file->fd, from, size, *at) : write(file->fd, from, size);

	if (at && put > 0)
		*at += put;
	return put;
}

int vfs_fsync(struct file *file, int only_data)
{
	(void)file;
	return only_data;
}

int vfs_fadvise(struct file *file, loff_t from, loff_t size, int advice)
{
	return posix_fadvise(file->fd, from, size, advice);
}

int create_pipe_files(struct file **ends, int flags)
{
	int fds[2];

	if (pipe2(fds, flags))
		return -errno;
	ends[0] = file_of(fds[0], "");
	ends[1] = file_of(fds[1], "");
	return 0;
}

int kern_path(const char *name, int flags, struct path *found)
{
	if (access(name + 1, F_OK))
		return -errno;
	found->dentry = calloc(1, sizeof(*found->dentry));
	snprintf(found->dentry->path, sizeof(found->dentry->path), "%s", name + 1);
	return flags;
}

int vfs_getattr(const struct path *path, struct kstat *found, int mask, int flags)
{
	struct stat now;

	(void)mask;
	if (stat(path->dentry->path, &now))
		return -errno;
	found->mode = now.st_mode;
	return flags;
}

int vfs_unlink(int *map, struct inode *parent, struct dentry *dentry, void *unused)
{
	(void)map;
	(void)parent;
	(void)unused;
	return unlink(dentry->path) ? -errno : 0;
}

int init_mkdir(const char *path, int mode)
{
	return mkdir(path + 1, mode) ? -errno : 0;
}

int init_mknod(const char *path, unsigned int mode, unsigned int device)
{
	const int fd = creat(path + 1, 0600);

	if (!S_ISBLK(mode) || device != MKDEV(RAMDISK_MAJOR, 0) || ftruncate(fd, disk_size))
		return -EINVAL;
	return close(fd);
}

int init_mount(const char *device, const char *path, const char *type, unsigned long flags,
	       void *data)
{
	(void)flags;
	(void)data;
	/* A disk is a file of the kernel's, which has been made. */
	if (!strcmp(type, "ext4") && access(device + 1, F_OK))
		return -errno;
	return access(path + 1, F_OK) ? -errno : 0;
}

static void flip(void)
{
	static const char *const paths[] = {"kload/data", "kload/ext4/data"};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		const int fd = open(paths[i], O_RDWR);
		char byte;

		if (fd < 0 || pread(fd, &byte, 1, 200000) != 1)
			continue;
		byte ^= 1;
		if (pwrite(fd, &byte, 1, 200000) == 1)
			close(fd);
	}
}

static int result_of(const struct kload_case *one, u32 *sum)
{
	const char *damaged = getenv("FLIP");
	int error = one->prepare ? one->prepare() : 0;

	if (error)
		return error;
	for (int i = 0; !error && i < 3; i++)
		error = one->round(one->batch);
	if (damaged && !strcmp(damaged, one->name))
		flip();
	if (!error && one->check)
		error = one->check(sum);
	if (one->finish)
		one->finish();
	return error;
}

int main(int count, char **words)
{
	int error;

	disk_size = count == 2 ? atol(words[1]) << 20 : 0;
	error = kload_files_init() ?: kload_disk_init();
	if (error) {
		printf("init %d\n", error);
		return 1;
	}
	for (const struct kload_case *one = kload_files; one->name; one++) {
		u32 sum = 0;

		error = result_of(one, &sum);
		printf("%s %lld\n", one->name, error ? error : (long long)sum);
	}
	return 0;
}
