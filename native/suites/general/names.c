/* Names: directories, the paths through them, and what is known of a file. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "general.h"

#define ENTRIES 90
#define DEPTH 14

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#endif

/* musl before 1.2.4 has no wrapper. */
static int rename_by(const char *from, const char *to, unsigned flags)
{
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

/* A directory with names of all lengths, listed in one go and again from a position. */
static bool crowded(unsigned round)
{
	char name[300];
	unsigned seen = 0;
	ino_t third = 0;
	long position = 0;

	TRY(mkdir("crowd", 0755) == 0, "mkdir");
	for (unsigned i = 0; i < ENTRIES; i++) {
		snprintf(name, sizeof(name), "crowd/%0*u", (int)(1 + (i * 7 + round) % 120), i + 1000000);
		const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		TRY(fd >= 0 && close(fd) == 0, "create a file");
	}
	DIR *directory = opendir("crowd");
	TRY(directory != NULL, "opendir");
	for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
		if (++seen == 3) {
			third = 0;
			position = telldir(directory);
		}
		if (seen == 4)
			third = entry->d_ino;
	}
	TRY(seen == ENTRIES + 2 + (unsigned)damaged(), "the entries of a directory");
	seekdir(directory, position);
	const struct dirent *again = readdir(directory);
	TRY(again != NULL && again->d_ino == third, "a position in a directory");
	rewinddir(directory);
	/* Removed while it is read, by descriptor. */
	for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
		if (entry->d_name[0] != '.')
			TRY(unlinkat(dirfd(directory), entry->d_name, 0) == 0, "unlinkat");
	TRY(closedir(directory) == 0 && rmdir("crowd") == 0, "remove a directory");
	return true;
}

/* Moves: within and across directories, over others, and exchanged. */
static bool moved(void)
{
	struct stat first;
	struct stat second;

	TRY(mkdir("left", 0700) == 0 && mkdir("right", 0700) == 0 && mkdir("left/inner", 0700) == 0,
	    "mkdir");
	TRY(put_file("left/a", "aaa", 3, 0600) && put_file("right/b", "bbbbb", 5, 0600), "write");
	TRY(stat("left/a", &first) == 0 && stat("right/b", &second) == 0, "stat");
	TRY(rename("left/a", "left/c") == 0 && rename("left/c", "right/c") == 0, "rename");
	TRY(rename("right/c", "right/b") == 0 && stat("right/b", &second) == 0 &&
		    second.st_ino == first.st_ino && second.st_size == 3,
	    "rename over a file");
	TRY(rename("left/inner", "right/inner") == 0, "move a directory");
	TRY(rename("right", "right/inner/loop") == -1 && errno == EINVAL, "a directory into itself");
	TRY(put_file("left/d", "d", 1, 0600), "write");
	if (rename_by("left/d", "right/b", RENAME_EXCHANGE) == 0)
		TRY(stat("left/d", &second) == 0 && second.st_ino == first.st_ino, "an exchange");
	else if (errno != EINVAL && !lacks("renameat2"))
		return false;
	TRY(rename_by("left/d", "right/b", RENAME_NOREPLACE) == -1, "RENAME_NOREPLACE");
	TRY(unlink("left/d") == 0 && unlink("right/b") == 0 && rmdir("right/inner") == 0, "unlink");
	TRY(rmdir("left") == 0 && rmdir("right") == 0, "rmdir");
	return true;
}

/* One file under many names, and names that point to names. */
static bool linked(void)
{
	char name[32];
	char target[64];
	char text[64] = "";
	struct stat status;

	TRY(put_file("origin", "linked", 6, 0600), "write");
	for (unsigned i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "hard%u", i);
		TRY(link("origin", name) == 0, "link");
		snprintf(name, sizeof(name), "soft%u", i);
		snprintf(target, sizeof(target), i == 0 ? "./origin" : "soft%u", i - 1);
		TRY(symlink(target, name) == 0, "symlink");
	}
	TRY(stat("soft11", &status) == 0 && status.st_nlink == 13, "links to a file");
	TRY(lstat("soft11", &status) == 0 && S_ISLNK(status.st_mode), "lstat");
	TRY(get_file("soft7", text, sizeof(text)) == 6 && strcmp(text, "linked") == 0, "read a link");
	TRY(readlink("soft9", text, sizeof(text)) == 5 && memcmp(text, "soft8", 5) == 0, "readlink");
	TRY(open("soft3", O_RDONLY | O_NOFOLLOW) == -1 && errno == ELOOP, "O_NOFOLLOW");
	TRY(symlink("around", "around") == 0 && access("around", F_OK) == -1 && errno == ELOOP,
	    "a link to itself");
	TRY(linkat(AT_FDCWD, "soft1", AT_FDCWD, "followed", AT_SYMLINK_FOLLOW) == 0 &&
		    unlink("followed") == 0,
	    "linkat");
	for (unsigned i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "hard%u", i);
		TRY(unlink(name) == 0, "unlink");
		snprintf(name, sizeof(name), "soft%u", i);
		TRY(unlink(name) == 0, "unlink");
	}
	return unlink("around") == 0 && unlink("origin") == 0;
}

bool directories(unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++)
		if (!crowded(round) || !moved() || !linked())
			return false;
	return true;
}

/* paths: the same files by many paths, most of which exist. */

static bool is_file(const char *path, ino_t inode)
{
	struct stat status;

	return stat(path, &status) == 0 && status.st_ino == inode;
}

static bool looked_up(const char *base, const char *deepest, ino_t inode)
{
	char path[2000];
	struct stat status;
	uint64_t extended[32];

	/* Up and down, with dots and doubled slashes. */
	snprintf(path, sizeof(path), "%s/.././/%s/../../%s", base, strrchr(base, '/') + 1, deepest);
	TRY(stat(path, &status) == -1 && errno == ENOENT, "a path above");
	for (unsigned i = 0; i < 6; i++) {
		snprintf(path, sizeof(path), "%s/%.*s%s", base, (int)(2 * i), "././././././", deepest);
		TRY(is_file(path, inode), "an absolute path");
		snprintf(path, sizeof(path), "%s/../%s", deepest, strrchr(deepest, '/') + 1);
		TRY(access(path, R_OK) == -1 && errno == ENOTDIR, "a file as a directory");
		snprintf(path, sizeof(path), "%.*s/missing%u", (int)(strrchr(deepest, '/') - deepest),
			 deepest, i % 3);
		TRY(access(path, F_OK) == -1 && errno == ENOENT, "a missing file");
		TRY(faccessat(AT_FDCWD, deepest, R_OK | W_OK, AT_EACCESS) == 0 || errno == ENOSYS,
		    "faccessat");
		TRY(fstatat(AT_FDCWD, deepest, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
			    status.st_ino == inode + damaged(),
		    "fstatat");
		/* struct statx, whose fifth word is the inode. */
		const long extra = syscall(SYS_statx, AT_FDCWD, deepest, 0, 0x7ff, extended);
		TRY(extra == 0 ? extended[4] == inode : lacks("statx"), "statx");
	}
	return true;
}

/* From a directory's descriptor, and confined below it. */
static bool from_descriptor(const char *deepest, ino_t inode)
{
	struct {
		uint64_t flags;
		uint64_t mode;
		uint64_t resolve;
	} how = {.flags = O_RDONLY | O_CLOEXEC, .resolve = 0x08 /* RESOLVE_BENEATH */};
	struct stat status;
	const int base = open("tree", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *below_tree = deepest + strlen("tree/");

	TRY(base >= 0, "open a directory");
	for (int i = 0; i < 4; i++) {
		const int fd = openat(base, below_tree, O_RDONLY | O_CLOEXEC);
		TRY(fd >= 0 && fstat(fd, &status) == 0 && status.st_ino == inode && close(fd) == 0,
		    "openat");
	}
	const long opened = syscall(SYS_openat2, base, below_tree, &how, sizeof(how));
	if (opened >= 0) {
		TRY(close((int)opened) == 0, "close");
		TRY(syscall(SYS_openat2, base, "../tree", &how, sizeof(how)) == -1 && errno == EXDEV,
		    "a path that leaves a directory");
	} else if (!lacks("openat2")) {
		return false;
	}
	return close(base) == 0;
}

bool paths(unsigned rounds)
{
	char base[256];
	char deepest[1024] = "tree";
	char name[80];
	struct stat status;

	TRY(getcwd(base, sizeof(base)) != NULL && mkdir("tree", 0755) == 0, "mkdir");
	for (unsigned i = 0; i < DEPTH; i++) {
		/* Some names are short enough to be in the entry itself, others are not. */
		snprintf(name, sizeof(name), "/%.*s%u", (int)(3 + i * 4),
			 "level-of-a-directory-whose-name-is-longer-than-most-names-are", i);
		strcat(deepest, name);
		TRY(mkdir(deepest, 0755) == 0, "mkdir");
	}
	strcat(deepest, "/file");
	TRY(put_file(deepest, "deep", 4, 0644) && stat(deepest, &status) == 0, "write");
	TRY(symlink(base, "here") == 0, "symlink");
	for (unsigned round = 0; round < rounds; round++) {
		char through[1200];
		char where[1200];
		snprintf(through, sizeof(through), "here/here/%s", deepest);
		if (!looked_up(base, deepest, status.st_ino) ||
		    !from_descriptor(deepest, status.st_ino))
			return false;
		TRY(is_file(through, status.st_ino), "a path through links");
		*strrchr(through, '/') = '\0';
		/* Into the depths, and back in one step. */
		TRY(chdir(through) == 0 && is_file("file", status.st_ino) &&
			    getcwd(where, sizeof(where)) != NULL &&
			    strncmp(where, base, strlen(base)) == 0 && strlen(where) > 200,
		    "chdir");
		TRY(is_file("../../../../../../../..", 0) == false && chdir("..") == 0 &&
			    access("file", F_OK) == -1 && chdir(base) == 0,
		    "the directory above");
		/* Names that are created and looked up while they do not exist. */
		for (unsigned i = 0; i < 5; i++) {
			snprintf(name, sizeof(name), "tree/fleeting-%u", i);
			TRY(access(name, F_OK) == -1 && mkdir(name, 0700) == 0 && access(name, X_OK) == 0 &&
				    rmdir(name) == 0 && access(name, F_OK) == -1,
			    "a fleeting directory");
		}
	}
	TRY(unlink(deepest) == 0 && unlink("here") == 0, "unlink");
	for (char *end; (end = strrchr(deepest, '/')) != NULL;) {
		*end = '\0';
		TRY(rmdir(deepest) == 0, "rmdir");
	}
	return true;
}

/* attributes: owners, modes, times, locks, and attributes by name. */

static bool owned(int fd)
{
	const struct timespec times[2] = {{1000000007, 5}, {1200000011, 999999999}};
	struct stat status;
	struct statfs system;
	struct statvfs portable;

	static const mode_t modes[] = {0600, 0755, 0444, 04711, 02070, 0640};
	for (size_t i = 0; i < COUNT(modes); i++)
		TRY((i % 2 ? chmod("file", modes[i]) : fchmod(fd, modes[i])) == 0 &&
			    fstat(fd, &status) == 0 && (status.st_mode & 07777) == modes[i],
		    "chmod");
	TRY(fchown(fd, getuid(), getgid()) == 0 && chown("file", (uid_t)-1, getgid()) == 0 &&
		    lchown("link", getuid(), (gid_t)-1) == 0,
	    "chown");
	TRY(futimens(fd, times) == 0 && stat("file", &status) == 0 &&
		    status.st_mtim.tv_sec == 1200000011 + damaged(),
	    "futimens");
	TRY(utimensat(AT_FDCWD, "link", NULL, AT_SYMLINK_NOFOLLOW) == 0 && utimes("file", NULL) == 0,
	    "utimensat");
	TRY(statfs(".", &system) == 0 && fstatfs(fd, &system) == 0 && system.f_bsize > 0 &&
		    statvfs("/", &portable) == 0,
	    "statfs");
	return true;
}

static bool named_attributes(int fd)
{
	char value[64];
	char names[256];

	if (setxattr("file", "user.note", "remember", 8, XATTR_CREATE) != 0)
		return lacks("user.xattr");
	TRY(fsetxattr(fd, "user.other", "a longer value of it", 20, 0) == 0, "fsetxattr");
	TRY(getxattr("file", "user.note", value, sizeof(value)) == 8 && same(value, "remember", 8),
	    "getxattr");
	TRY(flistxattr(fd, names, sizeof(names)) == 21, "flistxattr");
	TRY(setxattr("file", "user.note", "x", 1, XATTR_CREATE) == -1 && errno == EEXIST, "XATTR_CREATE");
	TRY(fremovexattr(fd, "user.other") == 0 && removexattr("file", "user.note") == 0 &&
		    getxattr("file", "user.note", value, 1) == -1 && errno == ENODATA,
	    "removexattr");
	return true;
}

static struct flock range(short type, off_t start, off_t length)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
}

/* Ranges that are split and joined, another process that is refused, then waits. */
static bool locked(int fd)
{
	struct flock lock = range(F_WRLCK, 0, 1000);
	const int other = open("file", O_RDWR | O_CLOEXEC);
	int ready[2];
	char word;

	if (fcntl(fd, F_SETLK, &lock) != 0)
		return lacks("CONFIG_FILE_LOCKING");
	for (off_t at = 100; at < 900; at += 200) {
		lock = range(at % 400 == 100 ? F_UNLCK : F_RDLCK, at, 50);
		TRY(fcntl(fd, F_SETLK, &lock) == 0, "split a lock");
	}
	TRY(pipe(ready) == 0, "pipe");
	const pid_t child = fork_child();
	if (child == 0) {
		struct flock mine = range(F_WRLCK, 400, 10);
		bool sound = fcntl(fd, F_GETLK, &mine) == 0 && mine.l_type != F_UNLCK &&
			     mine.l_pid == getppid();
		mine = range(F_WRLCK, 400, 10);
		sound = sound && fcntl(fd, F_SETLK, &mine) == -1 && errno == EAGAIN;
		mine = range(F_RDLCK, 110, 20);
		sound = sound && fcntl(fd, F_SETLK, &mine) == 0;
		/* Until the parent lets go. */
		mine = range(F_WRLCK, 600, 200);
		sound = write(ready[1], "w", 1) == 1 && sound;
		leave(sound && fcntl(fd, F_SETLKW, &mine) == 0);
	}
	TRY(child > 0 && close(ready[1]) == 0 && read(ready[0], &word, 1) == 1 && close(ready[0]) == 0,
	    "a process that was refused a lock");
	/* It has seen every lock; most likely it now waits for one. */
	usleep(300);
	lock = range(F_UNLCK, 0, 0);
	TRY(fcntl(fd, F_SETLK, &lock) == 0 && reap(child), "a lock of another process");
	TRY(flock(fd, LOCK_EX) == 0 && flock(other, LOCK_SH | LOCK_NB) == -1 && errno == EWOULDBLOCK &&
		    flock(fd, LOCK_SH) == 0 && flock(other, LOCK_SH | LOCK_NB) == 0 &&
		    flock(other, LOCK_UN) == 0 && flock(fd, LOCK_UN) == 0,
	    "flock");
#ifdef F_OFD_SETLK
	lock = range(F_WRLCK, 5, 5);
	TRY(fcntl(fd, F_OFD_SETLK, &lock) == 0 && fcntl(other, F_OFD_SETLK, &lock) == -1 &&
		    errno == EAGAIN,
	    "a lock of an open file");
	lock = range(F_UNLCK, 0, 0);
	TRY(fcntl(fd, F_OFD_SETLK, &lock) == 0, "unlock");
#endif
	return close(other) == 0;
}

bool attributes(unsigned rounds)
{
	TRY(put_file("file", "attributes", 10, 0600) && symlink("file", "link") == 0, "write");
	for (unsigned round = 0; round < rounds; round++) {
		const int fd = open("file", O_RDWR | O_CLOEXEC);
		TRY(fd >= 0, "open");
		if (!owned(fd) || !named_attributes(fd) || !locked(fd))
			return false;
		TRY(close(fd) == 0, "close");
		/* Nodes of other kinds. */
		TRY(mkfifo("fifo", 0600) == 0 && unlink("fifo") == 0, "mkfifo");
		if (mknod("node", S_IFCHR | 0600, makedev(1, 3)) == 0)
			TRY(unlink("node") == 0, "unlink");
		else if (!lacks("mknod"))
			return false;
		const mode_t mask = umask(077);
		TRY(umask(mask) == 077, "umask");
	}
	return unlink("file") == 0 && unlink("link") == 0;
}
