/* Stands in for a kernel that does not have a case of kload. */
#include <errno.h>
#include <sys/types.h>

int kernel_open(const char *path, int flags);
ssize_t kernel_write(int fd, const void *data, size_t size);

int kernel_open(const char *path, int flags)
{
	(void)path;
	(void)flags;
	return 3;
}

ssize_t kernel_write(int fd, const void *data, size_t size)
{
	(void)fd;
	(void)data;
	(void)size;
	errno = ENOENT;
	return -1;
}
