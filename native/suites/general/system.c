/* What the kernel tells in files, and its devices of characters: memory, chance and terminals. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <termios.h>
#include <unistd.h>

#include "general.h"

static char text[1 << 16];

/* As monitors and C libraries read them. */
static const char *const read_often[] = {
	"/proc/self/stat",   "/proc/self/statm",    "/proc/self/status", "/proc/self/maps", "/proc/self/cmdline",
	"/proc/self/limits", "/proc/self/mountinfo", "/proc/self/cgroup", "/proc/self/environ", "/proc/self/comm",
	"/proc/self/auxv",   "/proc/self/oom_score_adj", "/proc/self/wchan", "/proc/self/smaps",
	"/proc/self/smaps_rollup", "/proc/self/sched", "/proc/self/io", "/proc/self/schedstat", "/proc/meminfo",
	"/proc/stat",	     "/proc/uptime",	    "/proc/loadavg",	 "/proc/version",   "/proc/cpuinfo",
	"/proc/vmstat",	     "/proc/zoneinfo",	    "/proc/buddyinfo",	 "/proc/interrupts", "/proc/softirqs",
	"/proc/filesystems", "/proc/mounts",	    "/proc/devices",	 "/proc/partitions", "/proc/diskstats",
	"/proc/swaps",	     "/proc/net/dev",	    "/proc/net/tcp",	 "/proc/net/udp",    "/proc/net/unix",
	"/proc/net/route",   "/proc/net/sockstat",  "/proc/net/snmp",	 "/proc/net/netstat", "/proc/net/arp",
	"/proc/sys/kernel/osrelease", "/proc/sys/kernel/pid_max", "/proc/sys/vm/overcommit_memory",
	"/proc/sys/fs/file-nr", "/proc/sys/net/core/somaxconn", "/proc/sys/kernel/random/uuid",
	"/sys/devices/system/cpu/online", "/sys/devices/system/cpu/possible",
	"/sys/kernel/mm/transparent_hugepage/enabled", "/sys/class/net/lo/mtu", "/sys/class/net/lo/statistics/rx_bytes",
	"/sys/kernel/uevent_seqnum", "/dev/null",
};

static bool read_files(void)
{
	unsigned known = 0;

	for (size_t i = 0; i < COUNT(read_often); i++)
		known += get_file(read_often[i], text, sizeof(text)) >= 0;
	TRY(known > 10, "the files of the kernel");
	TRY(get_file("/proc/self/stat", text, sizeof(text)) > 0 && strtol(text, NULL, 10) == getpid() + damaged(),
	    "/proc/self/stat");
	return true;
}

/* Everything below a directory, to a depth; as ps and udev go through them. */
static unsigned walk(const char *path, unsigned depth, unsigned limit)
{
	char below[400];
	struct stat status;
	unsigned seen = 0;
	DIR *directory = opendir(path);

	if (directory == NULL)
		return 0;
	for (struct dirent *entry; seen < limit && (entry = readdir(directory)) != NULL;) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(below, sizeof(below), "%.140s/%.250s", path, entry->d_name);
		if (lstat(below, &status) != 0)
			continue;
		seen++;
		if (S_ISLNK(status.st_mode))
			seen += readlink(below, text, sizeof(text)) < 0;
		else if (S_ISDIR(status.st_mode) && depth > 0)
			seen += walk(below, depth - 1, limit - seen);
	}
	closedir(directory);
	return seen;
}

/* As ps reads every process. */
static bool every_process(void)
{
	char path[64];
	unsigned seen = 0;
	DIR *directory = opendir("/proc");

	TRY(directory != NULL, "opendir /proc");
	for (struct dirent *entry; seen < 25 && (entry = readdir(directory)) != NULL;) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		seen++;
		snprintf(path, sizeof(path), "/proc/%.20s/stat", entry->d_name);
		get_file(path, text, sizeof(text));
		snprintf(path, sizeof(path), "/proc/%.20s/status", entry->d_name);
		get_file(path, text, sizeof(text));
	}
	return closedir(directory) == 0 && (seen > 0 || fault("the processes of /proc"));
}

static bool devices(void)
{
	static unsigned char one[5000];
	static unsigned char two[5000];
	const int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int full = open("/dev/full", O_RDWR | O_CLOEXEC);

	TRY(zero >= 0 && null >= 0 && read(zero, one, sizeof(one)) == (ssize_t)sizeof(one) && one[4999] == 0 &&
		    write(null, one, 3000) == 3000 && read(null, one, 10) == 0,
	    "/dev/zero and /dev/null");
	if (full >= 0)
		TRY(write(full, one, 10) == -1 && errno == ENOSPC && close(full) == 0, "/dev/full");
	for (size_t size = 8; size < 5000; size = size * 3 + 1)
		TRY(syscall(SYS_getrandom, one, size, 0) == (long)size, "getrandom");
	TRY(get_file("/dev/urandom", two, 2000) == 1999 && memcmp(one, two, 1999) != 0, "/dev/urandom");
	return close(zero) == 0 && close(null) == 0;
}

bool system_files(unsigned rounds)
{
	struct sysinfo about;

	for (unsigned round = 0; round < rounds; round++) {
		if (!read_files() || !every_process() || !devices())
			return false;
		TRY(sysinfo(&about) == 0 && about.totalram > 0, "sysinfo");
		TRY(walk("/proc/self", 1, 300) > 10, "/proc/self");
		TRY(walk("/sys/devices", 3, 400) + walk("/sys/class", 1, 200) > 0 || without("/sys"), "/sys");
		TRY(walk("/proc/sys", 2, 500) > 0 || without("CONFIG_SYSCTL"), "/proc/sys");
	}
	return true;
}

/* terminals: a program at one end, what it shows at the other. */

static bool line_by_line(int master, int slave)
{
	char line[300];
	char back[700];

	for (unsigned i = 0; i < 12; i++) {
		const int size = snprintf(line, sizeof(line), "command %u %.*s\n", i, (int)(i * 9),
					  "----------------------------------------------------------------------------------------------------");
		TRY(write(master, line, (size_t)size) == size, "type a line");
		TRY(read(slave, back, sizeof(back)) == size && same(line, back, (size_t)size), "a line that was typed");
		/* Its echo, in which a line ends with two characters; it may come in parts. */
		TRY(read_all(master, back, (size_t)size + 1) && back[size] == '\n', "an echo");
		TRY(write(slave, "shown\n", 6) == 6 && read_all(master, back, 7), "what a program shows");
	}
	/* Corrected before it is sent. */
	TRY(write(master, "wrpng\x7f\x7f\x7fong\n", 12) == 12 && read(slave, back, sizeof(back)) == 6 &&
		    memcmp(back, "wrong\n", 6) == 0,
	    "a corrected line");
	/* The letters, three characters for each that was removed, and the end of the line. */
	return read_all(master, back, 5 + 3 * 3 + 3 + 2);
}

static bool raw_bytes(int master, int slave)
{
	struct termios mode;
	struct winsize size = {.ws_row = 50, .ws_col = 132};
	struct winsize seen;
	unsigned char bytes[900];
	unsigned char back[900];
	struct pollfd poller = {.fd = slave, .events = POLLIN};
	int queued = 0;

	pattern(bytes, sizeof(bytes), 51);
	TRY(tcgetattr(slave, &mode) == 0, "tcgetattr");
	const struct termios before = mode;
	cfmakeraw(&mode);
	TRY(tcsetattr(slave, TCSADRAIN, &mode) == 0, "tcsetattr");
	for (size_t length = 1; length < sizeof(bytes); length = length * 2 + 7) {
		TRY(write(master, bytes, length) == (ssize_t)length && poll(&poller, 1, 1000) == 1, "raw bytes");
		TRY(ioctl(slave, FIONREAD, &queued) == 0 && queued > 0 && read_all(slave, back, length) &&
			    same(bytes, back, length),
		    "raw bytes");
	}
	TRY(ioctl(master, TIOCSWINSZ, &size) == 0 && ioctl(slave, TIOCGWINSZ, &seen) == 0 && seen.ws_col == 132,
	    "a window's size");
	return tcflush(slave, TCIOFLUSH) == 0 && tcsetattr(slave, TCSANOW, &before) == 0;
}

/* With a session of its own, which an interrupt of the terminal reaches. */
static bool controlled(int master, const char *name)
{
	const pid_t child = fork_child();
	char back[100];

	if (child == 0) {
		sigset_t set;
		siginfo_t info;
		sigemptyset(&set);
		sigaddset(&set, SIGINT);
		sigprocmask(SIG_BLOCK, &set, NULL);
		setsid();
		const int own = open(name, O_RDWR);
		leave(own >= 0 && tcgetpgrp(own) == getpid() && write(own, "ready", 5) == 5 &&
		      sigwaitinfo(&set, &info) == SIGINT);
	}
	TRY(child > 0 && read_all(master, back, 5) && write(master, "\x03", 1) == 1 && reap(child), "an interrupt");
	return true;
}

static bool connected(unsigned rounds)
{
	char name[32];
	int unlocked = 0;
	unsigned number;

	/* A guest does not mount it. */
	if (access("/dev/pts/ptmx", F_OK) != 0 && unshare(CLONE_NEWNS) == 0) {
		mkdir("/dev/pts", 0755);
		if (mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=666") != 0)
			return lacks("CONFIG_UNIX98_PTYS");
	}
	for (unsigned round = 0; round < rounds; round++) {
		const int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (master < 0)
			return lacks("CONFIG_UNIX98_PTYS");
		TRY(ioctl(master, TIOCSPTLCK, &unlocked) == 0 && ioctl(master, TIOCGPTN, &number) == 0, "a terminal");
		snprintf(name, sizeof(name), "/dev/pts/%u", number);
		const int slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
		TRY(slave >= 0, "open a terminal");
		if (!line_by_line(master, slave) || !raw_bytes(master, slave) || !controlled(master, name))
			return false;
		TRY(close(slave) == 0 && close(master) == 0, "close a terminal");
	}
	return true;
}

bool terminals(unsigned rounds)
{
	return apart(connected, rounds, "CONFIG_UNIX98_PTYS");
}
