/*
 * Files on a block device, by a journalling file system. As the working directory changes to it,
 * its actions run in a process of their own.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../scratch.h"
#include "general.h"

#define TREE 40
#define BLOCK 4096ul
#define BODY (600 * KIB)
#define RECORDS 64
#define RECORD 1072

static unsigned char data[BODY];
/* And a zero byte. */
static unsigned char back[BODY + 1];

static bool is_as_written(const char *name, size_t size, size_t from)
{
	return (get_file(name, back, sizeof(back)) == (ssize_t)size && same(back, data + from, size)) ||
	       fault("contents on a device");
}

/* A tree as a package has it: directories, small files, a few large ones, links. */
static bool unpacked(unsigned round)
{
	char name[80];
	char target[80];

	for (unsigned i = 0; i < TREE; i++) {
		const size_t size = i % 13 == 12 ? 90000 : 40 + i * 797 % 9000;
		if (i % 8 == 0) {
			snprintf(name, sizeof(name), "part%u", i / 8);
			TRY(mkdir(name, 0755) == 0, "mkdir on a device");
		}
		snprintf(name, sizeof(name), "part%u/file-%u", i / 8, i);
		TRY(put_file(name, data + i + round, size, 0644), "write to a device");
		if (i % 5 == 0) {
			snprintf(target, sizeof(target), "part%u/link-%u", i / 8, i);
			TRY(symlink(i % 10 ? name : "a-target-that-is-too-long-to-be-kept-in-the-inode-of-the-link-itself", target) == 0,
			    "symlink on a device");
		} else if (i % 5 == 1) {
			snprintf(target, sizeof(target), "part%u/again-%u", i / 8, i);
			TRY(link(name, target) == 0 && rename(name, name) == 0, "link on a device");
		}
	}
	return true;
}

static bool read_again(unsigned round)
{
	char name[80];
	struct stat status;

	for (unsigned i = 0; i < TREE; i++) {
		const size_t size = i % 13 == 12 ? 90000 : 40 + i * 797 % 9000;
		snprintf(name, sizeof(name), "part%u/file-%u", i / 8, i);
		TRY(stat(name, &status) == 0 && status.st_size == (off_t)size, "stat on a device");
		if (!is_as_written(name, size, i + round))
			return false;
	}
	return true;
}

static bool removed(void)
{
	char name[300];

	for (unsigned part = 0; part < TREE / 8; part++) {
		snprintf(name, sizeof(name), "part%u", part);
		DIR *directory = opendir(name);
		TRY(directory != NULL, "opendir on a device");
		for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
			if (entry->d_name[0] != '.')
				TRY(unlinkat(dirfd(directory), entry->d_name, 0) == 0, "unlink on a device");
		TRY(closedir(directory) == 0 && rmdir(name) == 0, "rmdir on a device");
	}
	return true;
}

/* A large file: streamed, mapped, cut, punched, and read around the page cache. */
static bool large(unsigned round)
{
	struct stat status;
	const int fd = open("large", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	TRY(fd >= 0, "create on a device");
	for (size_t at = 0; at < BODY;) {
		const size_t size = 1000 + below(30000);
		const size_t part = size < BODY - at ? size : BODY - at;
		TRY(write(fd, data + at, part) == (ssize_t)part, "write to a device");
		at += part;
	}
	TRY(fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "fsync");
	if (!is_as_written("large", BODY, 0))
		return false;
	unsigned char *map = mmap(NULL, BODY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TRY(map != MAP_FAILED, "map a file of a device");
	for (size_t at = round * 100; at < BODY; at += 3 * BLOCK)
		map[at] = data[at] = (unsigned char)(data[at] + 1);
	TRY(msync(map, BODY, MS_SYNC) == 0 && munmap(map, BODY) == 0, "msync");
	TRY(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise");
	for (size_t i = 0; i < 25; i++) {
		const size_t at = below((uint32_t)(BODY - 20000));
		TRY(pread(fd, back, 5000 + 600 * i, (off_t)at) == (ssize_t)(5000 + 600 * i) && same(back, data + at, 5000),
		    "read from a device");
	}
	/* Aligned, for devices that copy to where the program wants it. */
	const int direct = open("large", O_RDWR | O_DIRECT | O_CLOEXEC);
	if (direct < 0 && errno != EINVAL)
		return fault("O_DIRECT");
	if (direct >= 0) {
		unsigned char *block = mmap(NULL, 16 * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		TRY(block != MAP_FAILED, "mmap");
		for (unsigned i = 0; i < 8; i++) {
			const off_t at = (off_t)(BLOCK * (3 * i + round % 3));
			TRY(pread(direct, block, 3 * BLOCK, at) == (ssize_t)(3 * BLOCK) && same(block, data + at, 3 * BLOCK),
			    "a direct read");
			TRY(pwrite(direct, block, 2 * BLOCK, at) == (ssize_t)(2 * BLOCK), "a direct write");
		}
		TRY(munmap(block, 16 * BLOCK) == 0 && close(direct) == 0, "close");
	}
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, BODY, 200000) != 0 && !lacks("fallocate"))
		return false;
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 100000, 50000) == 0)
		TRY(pread(fd, back, 1000, 120000) == 1000 && back[0] == 0 && back[999] == 0, "a hole on a device");
	TRY(ftruncate(fd, 77777) == 0 && fstat(fd, &status) == 0 && status.st_size == 77777 && fsync(fd) == 0, "ftruncate");
	TRY(fsetxattr(fd, "user.kind", "large", 5, 0) == 0 || lacks("user.xattr"), "an attribute on a device");
	return close(fd) == 0 && unlink("large") == 0;
}

static bool tree_on_disk(unsigned rounds)
{
	pattern(data, sizeof(data), 61);
	if (!scratch_mount())
		return false;
	for (unsigned round = 0; round < rounds; round++) {
		if (!unpacked(round) || !scratch_sync() || !read_again(round) || !large(round) || !removed())
			return false;
		sync();
		pattern(data, sizeof(data), 61);
	}
	return scratch_unmount();
}

bool disk_files(unsigned rounds)
{
	return apart(tree_on_disk, rounds, "ext4-on-null_blk");
}

/*
 * records: a table that is changed in place, and a log that comes first: what a mail server or a
 * small database does. Some changes are thrown away again.
 */

static bool in_log(int log, unsigned change, size_t record)
{
	const struct {
		uint32_t change;
		uint32_t record;
	} head = {change, (uint32_t)record};
	const struct iovec parts[2] = {{(void *)&head, sizeof(head)}, {data + record * RECORD, RECORD}};

	return (writev(log, parts, 2) == (ssize_t)(sizeof(head) + RECORD) && fdatasync(log) == 0) ||
	       fault("write a log");
}

static bool changed(unsigned round)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct flock unlock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
	const int table = open("table", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	TRY(table >= 0 && write_all(table, data, RECORDS * RECORD) && fsync(table) == 0, "write a table");
	for (unsigned change = 0; change < 14; change++) {
		const int log = open("table.log", O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
		lock.l_start = unlock.l_start = change * 10;
		lock.l_len = unlock.l_len = 10;
		TRY(log >= 0 && fcntl(table, F_SETLKW, &lock) == 0, "lock a table");
		for (unsigned i = 0; i < 3; i++) {
			const size_t record = below(RECORDS);
			if (!in_log(log, change, record))
				return false;
			if (change % 4 == 3)
				continue; /* thrown away */
			data[record * RECORD + 17] = (unsigned char)(change + round + i);
			TRY(pwrite(table, data + record * RECORD, RECORD, (off_t)(record * RECORD)) == RECORD, "change a table");
		}
		TRY(fdatasync(table) == 0 && close(log) == 0, "fdatasync");
		TRY(change % 3 == 0 ? unlink("table.log") == 0 : truncate("table.log", 0) == 0, "end a log");
		TRY(fcntl(table, F_SETLK, &unlock) == 0, "unlock a table");
	}
	TRY(close(table) == 0 && (access("table.log", F_OK) != 0 || unlink("table.log") == 0), "close a table");
	return true;
}

/* Many small files, each made durable, as mail is delivered. */
static bool delivered(unsigned round)
{
	char name[40];

	TRY(mkdir("new", 0755) == 0 && mkdir("cur", 0755) == 0, "mkdir on a device");
	for (unsigned i = 0; i < 12; i++) {
		const size_t size = 300 + i * 431 % 5000;
		const int fd = open("new/partial", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		TRY(fd >= 0 && write_all(fd, data + i, size) && fsync(fd) == 0 && close(fd) == 0, "deliver");
		snprintf(name, sizeof(name), "cur/%u.%u", round, i);
		TRY(rename("new/partial", name) == 0, "rename on a device");
		const int directory = open("cur", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		TRY(directory >= 0 && fsync(directory) == 0 && close(directory) == 0, "fsync a directory");
		if (!is_as_written(name, size, i))
			return false;
	}
	for (unsigned i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "cur/%u.%u", round, i);
		TRY(unlink(name) == 0, "unlink on a device");
	}
	return rmdir("new") == 0 && rmdir("cur") == 0;
}

static bool records_on_disk(unsigned rounds)
{
	pattern(data, sizeof(data), 62);
	if (!scratch_mount())
		return false;
	for (unsigned round = 0; round < rounds; round++) {
		if (!changed(round) || !delivered(round) || !scratch_sync() ||
		    !is_as_written("table", RECORDS * RECORD, 0))
			return false;
		TRY(unlink("table") == 0, "unlink on a device");
	}
	return scratch_unmount();
}

bool disk_records(unsigned rounds)
{
	return apart(records_on_disk, rounds, "ext4-on-null_blk");
}
