#define _GNU_SOURCE
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case.h"

#define CONFIGFS "/sys/kernel/config"
#define MOUNT_POINT "/scratch"
#define ITEM CONFIGFS "/nullb/scratch"
/* The output of mke2fs without zeros: pairs of offset and size, each followed by the bytes. */
#define BLOCKS "/suites/scratch.blocks"

static bool set(const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), ITEM "/%s", name);
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	const bool put = write(fd, value, strlen(value)) == (ssize_t)strlen(value);
	return close(fd) == 0 && put;
}

/* The device has the item's name; before Linux 6.0 it had a number. */
static int open_device(char *name, size_t size)
{
	char index[16] = "";
	int device = -1;

	for (int tries = 0; device < 0 && tries < 1000; tries++) {
		if (tries > 0)
			usleep(1000);
		snprintf(name, size, "/dev/scratch");
		device = open(name, O_RDWR | O_CLOEXEC);
		if (device >= 0)
			break;
		const int fd = open(ITEM "/index", O_RDONLY | O_CLOEXEC);
		const ssize_t got = fd < 0 ? 0 : read(fd, index, sizeof(index) - 1);
		if (fd >= 0)
			close(fd);
		snprintf(name, size, "/dev/nullb%ld", got > 0 ? strtol(index, NULL, 10) : 0);
		device = open(name, O_RDWR | O_CLOEXEC);
	}
	return device;
}

/* Write the file system; the file begins with its size in MiB. */
static bool lay_out(int device, int blocks)
{
	uint64_t extent[2];
	static unsigned char data[1 << 16];

	while (read_all(blocks, extent, sizeof(extent))) {
		for (uint64_t at = 0; at < extent[1];) {
			const size_t size = extent[1] - at < sizeof(data) ? extent[1] - at : sizeof(data);
			if (!read_all(blocks, data, size) ||
			    pwrite(device, data, size, (off_t)(extent[0] + at)) != (ssize_t)size)
				return fault("lay out a file system");
			at += size;
		}
	}
	return fsync(device) == 0 || fault("write a file system");
}

static char path[64];

static bool mount_device(void)
{
	return mount(path, MOUNT_POINT, "ext4", MS_NOATIME, "") == 0;
}

/* A directory to use instead, or NULL. */
static const char *given(void)
{
	return getenv("SUITE_SCRATCH");
}

bool scratch_mount(void)
{
	char size[32];
	uint64_t mebibytes;

	if (given() != NULL)
		return chdir(given()) == 0 || fault("enter a directory");
	const int blocks = open(BLOCKS, O_RDONLY | O_CLOEXEC);

	if (blocks < 0)
		unsupported("scratch.blocks");
	if (!read_all(blocks, &mebibytes, sizeof(mebibytes)))
		return fault("read a file system");
	mount("configfs", CONFIGFS, "configfs", 0, NULL);
	if (mkdir(ITEM, 0755) != 0 && errno != EEXIST)
		unsupported("CONFIG_BLK_DEV_NULL_BLK");
	snprintf(size, sizeof(size), "%llu", (unsigned long long)mebibytes);
	if (!set("size", size) || !set("memory_backed", "1") || !set("discard", "0") ||
	    !set("power", "1"))
		return fault("make a block device");
	const int device = open_device(path, sizeof(path));
	if (device < 0)
		return fault("open a block device");
	const bool laid_out = lay_out(device, blocks);
	close(blocks);
	close(device);
	if (!laid_out)
		return false;
	mkdir(MOUNT_POINT, 0755);
	if (mount_device())
		return chdir(MOUNT_POINT) == 0 || fault("enter a file system");
	if (errno == ENODEV)
		unsupported("CONFIG_EXT4_FS");
	return fault("mount a file system");
}

bool scratch_sync(void)
{
	if (given() != NULL)
		return true;
	return (chdir("/") == 0 && umount(MOUNT_POINT) == 0 && mount_device() &&
		chdir(MOUNT_POINT) == 0) ||
	       fault("mount a file system again");
}

bool scratch_unmount(void)
{
	if (given() != NULL)
		return true;
	if (chdir("/") != 0 || umount(MOUNT_POINT) != 0)
		return fault("unmount a file system");
	return (set("power", "0") && rmdir(ITEM) == 0) || fault("have a block device gone");
}
