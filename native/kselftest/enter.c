/*
 * enter DIRECTORY PROGRAM [ARGUMENT...]: run a test of the kernel's selftests in its directory, in
 * the environment that they expect of a distribution.
 *
 * Whatever the kernel does not have, the tests that need it report.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Mounted once in a boot: a test may have mounted something over it on purpose. */
static void mount_once(const char *type, const char *where, const char *options)
{
	struct stat parent;
	struct stat own;
	char above[64];

	mkdir(where, 0755);
	snprintf(above, sizeof(above), "%s/..", where);
	if (stat(above, &parent) != 0 || stat(where, &own) != 0 || parent.st_dev != own.st_dev)
		return;
	(void)mount(type, where, type, MS_NOSUID, options);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fputs("usage: enter DIRECTORY PROGRAM [ARGUMENT...]\n", stderr);
		return 126;
	}
	mount_once("devpts", "/dev/pts", "ptmxmode=0666,mode=0620");
	mount_once("tmpfs", "/dev/shm", "mode=1777");
	mount_once("mqueue", "/dev/mqueue", NULL);
	mount_once("cgroup2", "/sys/fs/cgroup", NULL);
	(void)symlink("pts/ptmx", "/dev/ptmx");
	(void)symlink("/proc/self/fd", "/dev/fd");
	umask(022);
	if (chdir(argv[1]) != 0) {
		printf("cannot enter %s: %s\n", argv[1], strerror(errno));
		return 126;
	}
	execv(argv[2], argv + 2);
	printf("cannot run %s: %s\n", argv[2], strerror(errno));
	return 127;
}
