/* Files on the file system of the working directory: small ones, large ones, and their transfer. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "general.h"

#define LARGE (900 * KIB)

static unsigned char data[LARGE];
static unsigned char back[LARGE];

/* One that is written in pieces of uneven sizes and read in others. */
static bool in_pieces(const char *name, size_t size, size_t put, size_t get)
{
	struct stat status;
	const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

	TRY(fd >= 0, "create a file");
	for (size_t at = 0; at < size; at += put) {
		const size_t part = size - at < put ? size - at : put;
		TRY(write(fd, data + at, part) == (ssize_t)part, "write a file");
	}
	TRY(lseek(fd, 0, SEEK_CUR) == (off_t)size && lseek(fd, 0, SEEK_SET) == 0, "lseek");
	memset(back, 0, size);
	for (size_t at = 0;;) {
		const ssize_t got = read(fd, back + at, get);
		TRY(got >= 0, "read a file");
		if (got == 0)
			break;
		at += (size_t)got;
	}
	TRY(fstat(fd, &status) == 0 && status.st_size == (off_t)size && same(data, back, size),
	    "contents of a file");
	return close(fd) == 0;
}

/* As logs are written: opened, extended and closed again. */
static bool appended(unsigned round)
{
	char line[120];
	char text[4096];
	size_t total = 0;

	for (unsigned i = 0; i < 14; i++) {
		const int fd = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		const int size = snprintf(line, sizeof(line), "%u %u %.*s\n", round, i, (int)(i * 5),
					  "....................................................................");
		TRY(fd >= 0 && write(fd, line, (size_t)size) == size && close(fd) == 0, "append");
		total += (size_t)size;
	}
	TRY(get_file("log", text, sizeof(text)) == (ssize_t)total && strstr(text, line) != NULL,
	    "contents of a log");
	return unlink("log") == 0;
}

/* A new version is written beside the old one and takes its name, as editors save. */
static bool replaced(unsigned round)
{
	char text[3000];

	for (unsigned i = 0; i < 5; i++) {
		const size_t size = 311 * (i + 1) + round;
		const int fd = open("document.new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		TRY(fd >= 0 && write_all(fd, data + i, size) && fsync(fd) == 0 && fchmod(fd, 0644) == 0 &&
			    close(fd) == 0 && rename("document.new", "document") == 0,
		    "replace a file");
		TRY(get_file("document", text, sizeof(text)) == (ssize_t)size && same(text, data + i, size),
		    "contents of a replaced file");
	}
	return unlink("document") == 0;
}

/* Flags of open, each with what it means for what follows. */
static bool flagged(void)
{
	char one;
	const int first = open("flags", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	TRY(first >= 0 && write(first, data, 500) == 500, "write a file");
	TRY(open("flags", O_RDWR | O_CREAT | O_EXCL, 0600) == -1 && errno == EEXIST, "O_EXCL");
	TRY(open("flags", O_RDONLY | O_DIRECTORY) == -1 && errno == ENOTDIR, "O_DIRECTORY");
	TRY(open(".", O_WRONLY) == -1 && errno == EISDIR, "a directory to write");
	const int reader = open("flags", O_RDONLY | O_NOATIME | O_NOFOLLOW);
	TRY(reader >= 0 && write(reader, "x", 1) == -1 && errno == EBADF, "O_RDONLY");
	const int writer = open("flags", O_WRONLY | O_SYNC | O_NONBLOCK);
	TRY(writer >= 0 && read(writer, &one, 1) == -1 && errno == EBADF, "O_WRONLY");
	TRY(pwrite(writer, "abc", 3, 498) == 3 && pread(reader, back, 10, 495) == 6 &&
		    back[5] == 'c',
	    "two descriptors of a file");
	const int path = open("flags", O_PATH);
	TRY(path >= 0 && read(path, &one, 1) == -1 && errno == EBADF, "O_PATH");
	TRY(fcntl(reader, F_GETFL) >= 0 && fcntl(reader, F_SETFL, O_NONBLOCK) == 0 &&
		    fcntl(reader, F_SETFD, FD_CLOEXEC) == 0 && fcntl(reader, F_GETFD) == FD_CLOEXEC,
	    "fcntl");
	const int copy = fcntl(reader, F_DUPFD_CLOEXEC, 30);
	TRY(copy >= 30 && dup3(copy, 40, O_CLOEXEC) == 40 && dup2(40, 41) == 41, "copies");
	int copies[24];
	for (size_t i = 0; i < COUNT(copies); i++)
		copies[i] = dup((int[]){reader, first, copy}[i % 3]);
	for (size_t i = COUNT(copies); i-- > 0;)
		TRY(copies[i] >= 0 && close(copies[i]) == 0, "dup");
	TRY(lseek(41, 7, SEEK_SET) == 7 && read(reader, &one, 1) == 1 && one == (char)data[7],
	    "a position that descriptors share");
	const int emptied = open("flags", O_RDWR | O_TRUNC);
	TRY(emptied >= 0 && read(reader, &one, 1) == 0, "O_TRUNC");
	for (int i = 0; i < 8; i++) {
		const int fds[] = {first, reader, writer, path, copy, 40, 41, emptied};
		TRY(close(fds[i]) == 0, "close");
	}
	const int unnamed = open(".", O_TMPFILE | O_RDWR, 0600);
	if (unnamed < 0 && !lacks("O_TMPFILE"))
		return false;
	if (unnamed >= 0)
		TRY(write(unnamed, data, 99) == 99 && close(unnamed) == 0, "a file without a name");
	return unlink("flags") == 0;
}

bool small_files(unsigned rounds)
{
	static const struct {
		size_t size;
		size_t put;
		size_t get;
	} shapes[] = {
		{1, 1, 100},       {90, 30, 17},       {700, 700, 4096}, {2222, 300, 555},
		{4097, 4097, 640}, {6000, 1500, 3000}, {11000, 3300, 5000},
	};
	char name[32];

	pattern(data, sizeof(data), 11);
	for (unsigned round = 0; round < rounds; round++) {
		for (size_t i = 0; i < COUNT(shapes); i++) {
			snprintf(name, sizeof(name), "part-%zu", i);
			if (!in_pieces(name, shapes[i].size, shapes[i].put, shapes[i].get))
				return false;
		}
		for (size_t i = 0; i < COUNT(shapes); i++) {
			snprintf(name, sizeof(name), "part-%zu", i);
			TRY(access(name, R_OK | W_OK) == 0 && unlink(name) == 0, "unlink");
		}
		if (!appended(round) || !replaced(round) || !flagged())
			return false;
	}
	return true;
}

/* Records at random positions, alone and in vectors. */
static bool random_access(int fd, size_t records)
{
	unsigned char one[350];
	unsigned char two[900];

	for (unsigned i = 0; i < 60; i++) {
		const size_t record = below((uint32_t)records);
		const off_t at = (off_t)(record * 1250);
		struct iovec parts[4] = {{one, 50}, {two, 700}, {one + 50, 300}, {two + 700, 200}};
		TRY(preadv(fd, parts, 4, at) == 1250, "preadv");
		TRY(same(data + at, one, 50) && same(data + at + 50, two, 700), "a record");
		data[at + 60] = two[10] = (unsigned char)i;
		if (i % 3 == 0)
			TRY(pwrite(fd, data + at, 1250, at) == 1250, "pwrite");
		else
			TRY(pwritev(fd, parts, 4, at) == 1250, "pwritev");
		TRY(pread(fd, back, 777, at) == 777 && same(data + at, back, 777), "pread");
	}
	return true;
}

/* Holes, lengths, and space that is reserved or given back. */
static bool shaped(int fd)
{
	struct stat status;

	TRY(ftruncate(fd, 300000) == 0 && ftruncate(fd, 500001) == 0, "ftruncate");
	TRY(pread(fd, back, 2000, 299000) == 2000 && back[500] == data[299500] && back[1500] == 0,
	    "the end of a file that was cut");
	TRY(pwrite(fd, "end", 3, 880000) == 3 && fstat(fd, &status) == 0 && status.st_size == 880003,
	    "a file with a hole");
	if (fallocate(fd, 0, 0, 400000) != 0 && !lacks("fallocate"))
		return false;
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 50000, 70000) == 0)
		TRY(pread(fd, back, 9000, 49000) == 9000 && back[2000] == 0 && back[999] == data[49999],
		    "a punched hole");
	else if (!lacks("fallocate"))
		return false;
	const off_t hole = lseek(fd, 0, SEEK_HOLE);
	const off_t beyond = lseek(fd, 700000, SEEK_DATA);
	TRY(hole >= 0 && beyond >= 0 && beyond <= 880000, "SEEK_HOLE and SEEK_DATA");
	return true;
}

bool large_files(unsigned rounds)
{
	pattern(data, sizeof(data), 12);
	for (unsigned round = 0; round < rounds; round++) {
		const size_t step = 5000 + 7000 * (round % 4);
		if (!in_pieces("large", LARGE - 77 * round, step, 3 * step + 500))
			return false;
		const int fd = open("large", O_RDWR | O_CLOEXEC);
		TRY(fd >= 0, "open a file");
		for (int advice = 0; advice < 6; advice++)
			TRY(posix_fadvise(fd, 0, 0, advice) == 0 || errno == ENOSYS, "posix_fadvise");
		TRY(readahead(fd, 0, 300000) == 0 || errno == EINVAL || errno == ENOSYS, "readahead");
		if (!random_access(fd, 600))
			return false;
		/* Read backwards, as one who looks for the last lines. */
		for (size_t at = 600000; at >= 9000; at -= 9000)
			TRY(pread(fd, back, 9000, (off_t)(at - 9000)) == 9000 &&
				    same(back, data + at - 9000, 9000),
			    "read backwards");
		if (!shaped(fd))
			return false;
		TRY(fdatasync(fd) == 0 && close(fd) == 0 && truncate("large", 100) == 0 &&
			    unlink("large") == 0,
		    "end of a large file");
		pattern(data, sizeof(data), 12);
	}
	return true;
}

/* Whether a file has these contents. */
static bool holds(const char *name, size_t size, size_t from)
{
	return get_file(name, back, sizeof(back)) == (ssize_t)size && same(back, data + from, size);
}

/* Through a pipe, without a copy in user space. */
static bool spliced(int from, size_t size)
{
	int ends[2];
	loff_t at = 100;
	loff_t put = 0;
	const int to = open("spliced", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	const int twin = open("teed", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int other[2];

	TRY(to >= 0 && twin >= 0 && pipe(ends) == 0 && pipe(other) == 0, "pipe");
	for (size_t done = 0; done < size;) {
		const ssize_t in = splice(from, &at, ends[1], NULL, 20000, SPLICE_F_MOVE);
		TRY(in > 0, "splice from a file");
		TRY(tee(ends[0], other[1], (size_t)in, 0) == in, "tee");
		for (ssize_t out = 0; out < in;) {
			const ssize_t moved =
				splice(ends[0], NULL, to, &put, (size_t)(in - out), SPLICE_F_MORE);
			TRY(moved > 0, "splice to a file");
			out += moved;
		}
		TRY(splice(other[0], NULL, twin, NULL, (size_t)in, 0) > 0, "splice a twin");
		done += (size_t)in;
		/* What is left of the twin, so that it does not fill up. */
		fcntl(other[0], F_SETFL, O_NONBLOCK);
		while (read(other[0], back, sizeof(back)) > 0)
			;
		fcntl(other[0], F_SETFL, 0);
	}
	for (int i = 0; i < 2; i++)
		TRY(close(ends[i]) == 0 && close(other[i]) == 0, "close");
	return close(to) == 0 && close(twin) == 0 && (holds("spliced", (size_t)put, 100) || fault("a spliced file"));
}

static bool gifted(void)
{
	int ends[2];
	const struct iovec parts[2] = {{data, 6000}, {data + 9000, 3000}};

	TRY(pipe(ends) == 0, "pipe");
	const ssize_t put = vmsplice(ends[1], parts, 2, 0);
	TRY(put == 9000, "vmsplice");
	TRY(read_all(ends[0], back, 9000) && same(back, data, 6000) && same(back + 6000, data + 9000, 3000),
	    "what went through vmsplice");
	return close(ends[0]) == 0 && close(ends[1]) == 0;
}

bool transfers(unsigned rounds)
{
	pattern(data, sizeof(data), 13);
	for (unsigned round = 0; round < rounds; round++) {
		const size_t size = 140000 + 1111 * round;
		TRY(put_file("from", data, size, 0600), "write a file");
		const int from = open("from", O_RDONLY | O_CLOEXEC);
		const int sent = open("sent", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		const int copied = open("copied", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		TRY(from >= 0 && sent >= 0 && copied >= 0, "open files");
		off_t at = 0;
		while (at < (off_t)size)
			TRY(sendfile(sent, from, &at, 33333) > 0, "sendfile");
		TRY(holds("sent", size, 0), "a file that was sent");
		loff_t begin = 50;
		while (begin < (loff_t)size) {
			const ssize_t done = copy_file_range(from, &begin, copied, NULL, 60000, 0);
			if (done < 0 && !lacks("copy_file_range"))
				return false;
			if (done <= 0)
				break;
		}
		if (begin >= (loff_t)size)
			TRY(holds("copied", size - 50, 50), "a file that was copied");
		if (!spliced(from, size / 2) || !gifted())
			return false;
		TRY(close(from) == 0 && close(sent) == 0 && close(copied) == 0, "close");
		TRY(unlink("from") == 0 && unlink("sent") == 0 && unlink("copied") == 0 &&
			    unlink("spliced") == 0 && unlink("teed") == 0,
		    "unlink");
	}
	return true;
}
