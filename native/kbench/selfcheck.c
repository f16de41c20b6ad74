/*
 * A quick check of the kernel by its guest: is each part that a wrong optimisation would break
 * still right? A few dozen operations with known results, in about a hundredth of a second.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kbench.h"

#define BLOCK 4096
/* From the kernel's futex interface; musl has no header for it. */
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

static unsigned char out[4 * BLOCK];
static unsigned char in[4 * BLOCK];

static bool identity(void)
{
	return getpid() > 0 && syscall(SYS_gettid) == getpid() && getpgid(0) == getpgrp();
}

static bool bad_calls_refused(void)
{
	if (read(-1, in, 1) != -1 || errno != EBADF)
		return false;
	if (open("/no/such/file", O_RDONLY) != -1 || errno != ENOENT)
		return false;
	/* Address 1 is never mapped: the copy to user space must fault and recover. */
	const int fd = open("/", O_RDONLY | O_DIRECTORY);
	const bool faulted = syscall(SYS_getdents64, fd, (void *)1, 512) == -1 && errno == EFAULT;
	close(fd);
	return faulted && syscall(SYS_pipe2, (void *)1, 0) == -1 && errno == EFAULT;
}

static bool descriptors(void)
{
	struct stat one;
	struct stat two;
	const int fd = open("/", O_RDONLY | O_DIRECTORY);
	const int copy = dup(fd);
	const bool sound = fd >= 0 && copy > fd && dup2(fd, copy) == copy && fstat(fd, &one) == 0 &&
			   fstat(copy, &two) == 0 && one.st_ino == two.st_ino &&
			   fcntl(copy, F_SETFD, FD_CLOEXEC) == 0 && fcntl(copy, F_GETFD) == FD_CLOEXEC;

	close(fd);
	return sound && close(copy) == 0 && close(copy) == -1 && errno == EBADF;
}

static bool pipes(void)
{
	int ends[2];

	if (pipe2(ends, O_NONBLOCK) != 0)
		return false;
	bool sound = read(ends[0], in, 1) == -1 && errno == EAGAIN;
	for (size_t size = 1; sound && size <= sizeof(out); size = size * 3 + 1) {
		pattern(out, size, (unsigned)size);
		sound = write_all(ends[1], out, size) && read_all(ends[0], in, size) &&
			memcmp(out, in, size) == 0;
	}
	close(ends[1]);
	sound = sound && read(ends[0], in, 1) == 0;
	close(ends[0]);
	return sound;
}

static bool files(void)
{
	const char *name = "selfcheck-file";
	const int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0640);
	struct stat stat_buffer;

	if (fd < 0)
		return false;
	pattern(out, sizeof(out), 5);
	bool sound = write_all(fd, out, sizeof(out)) && pread(fd, in, BLOCK, 100) == BLOCK &&
		     memcmp(out + 100, in, BLOCK) == 0 && lseek(fd, -10, SEEK_END) > 0 &&
		     read(fd, in, 100) == 10 && memcmp(out + sizeof(out) - 10, in, 10) == 0;
	/* A hole reads as zeros. */
	sound = sound && ftruncate(fd, 10) == 0 && pwrite(fd, "x", 1, 2 * BLOCK) == 1 &&
		pread(fd, in, BLOCK, BLOCK) == BLOCK && in[0] == 0 && in[BLOCK - 1] == 0;
	sound = sound && fstat(fd, &stat_buffer) == 0 && stat_buffer.st_size == 2 * BLOCK + 1;
	close(fd);
	return unlink(name) == 0 && sound;
}

static bool names(void)
{
	char text[64] = "";
	struct stat stat_buffer;
	bool sound = mkdir("selfcheck-dir", 0700) == 0;
	const int fd = open("selfcheck-dir/a", O_WRONLY | O_CREAT, 0600);

	sound = sound && fd >= 0 && rename("selfcheck-dir/a", "selfcheck-dir/b") == 0;
	sound = sound && link("selfcheck-dir/b", "selfcheck-dir/c") == 0 && fstat(fd, &stat_buffer) == 0 &&
		stat_buffer.st_nlink == 2;
	sound = sound && symlink("b", "selfcheck-dir/d") == 0 &&
		readlink("selfcheck-dir/d", text, sizeof(text)) == 1 && text[0] == 'b' &&
		stat("selfcheck-dir/d", &stat_buffer) == 0;
	sound = sound && rmdir("selfcheck-dir") == -1 && errno == ENOTEMPTY;
	close(fd);
	unlink("selfcheck-dir/b");
	unlink("selfcheck-dir/c");
	unlink("selfcheck-dir/d");
	return rmdir("selfcheck-dir") == 0 && sound;
}

static bool proc_files(void)
{
	char text[1024] = "";
	char expected[32];
	const int fd = open("/proc/self/stat", O_RDONLY);
	const ssize_t size = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	close(fd);
	snprintf(expected, sizeof(expected), "%d (", (int)getpid());
	return size > 0 && strncmp(text, expected, strlen(expected)) == 0;
}

static bool memory(void)
{
	const size_t page = (size_t)getpagesize();
	unsigned char *map =
		mmap(NULL, 16 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return false;
	bool sound = map[5 * page] == 0;
	pattern(map, 16 * page, 6);
	sound = sound && mprotect(map, page, PROT_READ) == 0 && munmap(map + 4 * page, page) == 0;
	/* The kernel must see what the user would: a read-only page and a hole. */
	const int fd = open("/proc/self/exe", O_RDONLY);
	sound = sound && read(fd, map, 16) == -1 && errno == EFAULT;
	sound = sound && read(fd, map + 4 * page, 16) == -1 && errno == EFAULT;
	sound = sound && read(fd, map + page, 4) == 4 && memcmp(map + page, "\177ELF", 4) == 0;
	close(fd);
	unsigned char *moved = mremap(map + page, 3 * page, 32 * page, MREMAP_MAYMOVE);
	sound = sound && moved != MAP_FAILED && moved[2 * page + 8] == (unsigned char)(8 * 7 + 3 * page / 256 + 6);
	if (moved != MAP_FAILED)
		munmap(moved, 32 * page);
	/* What remains at the old address; moving may have left nothing between. */
	return munmap(map, page) == 0 && munmap(map + 5 * page, 11 * page) == 0 && sound;
}

static bool mapped_file(void)
{
	const int fd = open("selfcheck-map", O_RDWR | O_CREAT | O_TRUNC, 0600);
	bool sound = fd >= 0 && unlink("selfcheck-map") == 0 && ftruncate(fd, 2 * BLOCK) == 0;
	unsigned char *map = mmap(NULL, 2 * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	sound = sound && map != MAP_FAILED;
	if (sound) {
		map[BLOCK + 1] = 42;
		sound = msync(map, 2 * BLOCK, MS_SYNC) == 0 && pread(fd, in, 2, BLOCK) == 2 && in[1] == 42;
		munmap(map, 2 * BLOCK);
	}
	close(fd);
	return sound;
}

static bool processes(void)
{
	for (int status = 0; status < 8; status++) {
		const pid_t pid = fork();
		if (pid == 0)
			_exit(status);
		if (pid < 0 || !reap(pid, status))
			return false;
	}
	const pid_t pid = fork();
	if (pid == 0) {
		for (;;)
			pause();
	}
	int status = 0;
	return pid > 0 && kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid &&
	       WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && waitpid(-1, NULL, WNOHANG) == -1 &&
	       errno == ECHILD;
}

static bool copy_on_write(void)
{
	unsigned char *map =
		mmap(NULL, 8 * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return false;
	memset(map, 1, 8 * BLOCK);
	const pid_t pid = fork();
	if (pid == 0) {
		memset(map, 2, 8 * BLOCK);
		_exit(map[7 * BLOCK]);
	}
	const bool sound = pid > 0 && reap(pid, 2) && map[0] == 1 && map[8 * BLOCK - 1] == 1;
	munmap(map, 8 * BLOCK);
	return sound;
}

static volatile sig_atomic_t got_signal;

static void on_signal(int number)
{
	got_signal = number;
}

static bool signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	got_signal = 0;
	if (sigaction(SIGUSR1, &action, NULL) != 0 || sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return false;
	bool sound = kill(getpid(), SIGUSR1) == 0 && got_signal == 0;
	sigset_t pending;
	sound = sound && sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1;
	const int fd = signalfd(-1, &set, 0);
	struct signalfd_siginfo info = {0};
	sound = sound && read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR1;
	close(fd);
	sound = sound && kill(getpid(), SIGUSR1) == 0;
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return sound && got_signal == SIGUSR1;
}

static bool futexes(void)
{
	int *word = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const struct timespec limit = {.tv_sec = 5};

	if (word == MAP_FAILED)
		return false;
	bool sound = syscall(SYS_futex, word, FUTEX_WAIT, 1, &limit) == -1 && errno == EAGAIN;
	const pid_t pid = fork();
	if (pid == 0) {
		__atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, word, FUTEX_WAKE, 1);
		_exit(3);
	}
	while (pid > 0 && __atomic_load_n(word, __ATOMIC_SEQ_CST) == 0)
		if (syscall(SYS_futex, word, FUTEX_WAIT, 0, &limit) == -1 && errno == ETIMEDOUT)
			break;
	sound = sound && pid > 0 && *word == 1 && reap(pid, 3);
	munmap(word, BLOCK);
	return sound;
}

static bool exchange(int one, int two)
{
	pattern(out, 1000, 9);
	return write_all(one, out, 1000) && read_all(two, in, 1000) && memcmp(out, in, 1000) == 0 &&
	       write_all(two, out, 500) && read_all(one, in, 500) && memcmp(out, in, 500) == 0;
}

static bool unix_sockets(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		return false;
	const bool sound = exchange(pair[0], pair[1]) && shutdown(pair[0], SHUT_WR) == 0 &&
			   read(pair[1], in, 1) == 0;
	close(pair[0]);
	close(pair[1]);
	return sound;
}

static bool loopback(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof(address);
	const int listener = socket(AF_INET, SOCK_STREAM, 0);

	/* A kernel without IPv4 is a configuration, not a fault. */
	if (listener < 0)
		return errno == EAFNOSUPPORT;
	const int client = socket(AF_INET, SOCK_STREAM, 0);
	int server = -1;
	bool sound = bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
		     listen(listener, 1) == 0 &&
		     getsockname(listener, (struct sockaddr *)&address, &length) == 0 &&
		     connect(client, (struct sockaddr *)&address, sizeof(address)) == 0 &&
		     (server = accept(listener, NULL, NULL)) >= 0 && exchange(client, server);
	close(listener);
	close(client);
	close(server);
	return sound;
}

static bool clocks(void)
{
	struct timespec before;
	struct timespec after;
	const struct timespec moment = {.tv_nsec = 1000000};

	if (clock_gettime(CLOCK_MONOTONIC, &before) != 0 || nanosleep(&moment, NULL) != 0 ||
	    clock_gettime(CLOCK_MONOTONIC, &after) != 0)
		return false;
	return (after.tv_sec - before.tv_sec) * 1000000000ll + after.tv_nsec - before.tv_nsec >= 1000000;
}

static bool timers(void)
{
	const struct itimerspec soon = {.it_value = {.tv_nsec = 1000000}};
	uint64_t expirations = 0;
	const int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	const bool sound = fd >= 0 && timerfd_settime(fd, 0, &soon, NULL) == 0 &&
			   read(fd, &expirations, sizeof(expirations)) == sizeof(expirations);

	close(fd);
	return sound && expirations >= 1;
}

static bool polling(void)
{
	const uint64_t three = 3;
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x1122334455667788};
	const int epoll = epoll_create1(0);
	const int counter = eventfd(0, EFD_NONBLOCK);
	struct pollfd poller = {.fd = counter, .events = POLLIN};
	bool sound = epoll >= 0 && counter >= 0 &&
		     epoll_ctl(epoll, EPOLL_CTL_ADD, counter, &event) == 0 &&
		     epoll_wait(epoll, &event, 1, 0) == 0 && poll(&poller, 1, 0) == 0;

	sound = sound && write_all(counter, &three, sizeof(three)) && poll(&poller, 1, 1000) == 1 &&
		epoll_wait(epoll, &event, 1, 1000) == 1 && event.data.u64 == 0x1122334455667788;
	close(counter);
	close(epoll);
	return sound;
}

static bool scheduling(void)
{
	struct rusage usage;

	return sched_yield() == 0 && getpriority(PRIO_PROCESS, 0) <= 19 &&
	       getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_minflt > 0;
}

static bool randomness(void)
{
	unsigned char one[32] = {0};
	unsigned char two[32] = {0};

	return syscall(SYS_getrandom, one, 32, 0) == 32 && syscall(SYS_getrandom, two, 32, 0) == 32 &&
	       memcmp(one, two, 32) != 0;
}

#define CHECK(name) {#name, name}
static const struct {
	const char *name;
	bool (*holds)(void);
} checks[] = {
	CHECK(identity),   CHECK(bad_calls_refused), CHECK(descriptors), CHECK(pipes),
	CHECK(files),      CHECK(names),             CHECK(proc_files),  CHECK(memory),
	CHECK(mapped_file), CHECK(processes),        CHECK(copy_on_write), CHECK(signals),
	CHECK(futexes),    CHECK(unix_sockets),      CHECK(loopback),    CHECK(clocks),
	CHECK(timers),     CHECK(polling),           CHECK(scheduling),  CHECK(randomness),
};

bool selfcheck(void)
{
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		errno = 0;
		if (!checks[i].holds() || damaged(checks[i].name)) {
			printf("selfcheck=failed check=%s error=\"%s\"\n", checks[i].name, strerror(errno));
			return false;
		}
	}
	puts("selfcheck=passed");
	return true;
}
