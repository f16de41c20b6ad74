/* Who a process is, what it may do, and what it sees: credentials, filters, namespaces, groups. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "general.h"

#ifdef __x86_64__
#define FILTER_ARCH AUDIT_ARCH_X86_64
#else
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#endif

/* What a login asks, by calls that a C library does not answer itself. */
static bool asked(void)
{
	gid_t groups[64];
	struct utsname name;
	uid_t ids[3];

	for (int i = 0; i < 6; i++) {
		TRY(syscall(SYS_getuid) == (long)getuid() && syscall(SYS_geteuid) == (long)geteuid() &&
			    syscall(SYS_getgid) == (long)getgid() && syscall(SYS_getegid) == (long)getegid(),
		    "who a process is");
		TRY(syscall(SYS_getpid) + damaged() == (long)getpid() && syscall(SYS_gettid) == (long)getpid() &&
			    syscall(SYS_getppid) == (long)getppid() && getpgrp() == getpgid(0) && getsid(0) >= 0,
		    "the numbers of a process");
	}
	TRY(getresuid(&ids[0], &ids[1], &ids[2]) == 0 && getgroups(64, groups) >= 0, "getresuid");
	TRY(uname(&name) == 0 && strcmp(name.sysname, "Linux") == 0, "uname");
	return true;
}

/* A privileged process that gives its privileges up, one after another. */
static bool lowered(unsigned rounds)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2];
	const gid_t groups[] = {1001, 1002, 1003, 77};
	int fd;

	(void)rounds;
	if (getuid() != 0)
		return without("root");
	TRY(syscall(SYS_capget, &header, sets) == 0, "capget");
	if (setgroups(COUNT(groups), groups) != 0)
		return lacks("CAP_SETGID");
	TRY(put_file("secret", "mine", 4, 0600) && chown("secret", 1001, 1002) == 0 &&
		    chmod(".", 0777) == 0,
	    "chown");
	TRY(setresgid(77, 77, 77) == 0 && setresuid(1000, 1000, 0) == 0, "setresuid");
	TRY(open("secret", O_RDONLY) == -1 && errno == EACCES, "a file of another user");
	TRY(chmod("secret", 0644) == -1 && errno == EPERM, "chmod of another's file");
	TRY((fd = open("own", O_RDWR | O_CREAT, 0640)) >= 0 && close(fd) == 0 && unlink("own") == 0,
	    "a file of one's own");
	TRY(seteuid(0) == 0 && geteuid() == 0 && unlink("secret") == 0, "the saved user");
	TRY(syscall(SYS_capget, &header, sets) == 0, "capget");
	sets[0].effective &= ~(1u << CAP_CHOWN);
	TRY(syscall(SYS_capset, &header, sets) == 0 && chown(".", 5, 5) == -1 && errno == EPERM, "capset");
	TRY(setresuid(1000, 1000, 1000) == 0 && setuid(0) == -1 && errno == EPERM, "a lowered process");
	return prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_GET_DUMPABLE) == 0;
}

/* A filter of system calls, which every later call passes through. */
static bool filtered(unsigned rounds)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdirat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 88),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = COUNT(code), .filter = code};
	struct stat status;

	(void)rounds;
	TRY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
	    "no new privileges");
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		return errno == EINVAL ? without("CONFIG_SECCOMP_FILTER") : lacks("CONFIG_SECCOMP_FILTER");
	for (int i = 0; i < 60; i++)
		TRY(stat(".", &status) == 0 && syscall(SYS_mkdirat, AT_FDCWD, "refused", 0700) == -1 && errno == 88,
		    "a filtered call");
	return true;
}

static bool controlled(void)
{
	char name[16] = "";
	int value;

	TRY(prctl(PR_SET_NAME, "general-name") == 0 && prctl(PR_GET_NAME, name) == 0 &&
		    strcmp(name, "general-name") == 0,
	    "PR_SET_NAME");
	TRY(prctl(PR_GET_PDEATHSIG, &value) == 0 && prctl(PR_GET_KEEPCAPS) == 0 &&
		    prctl(PR_GET_TIMERSLACK) >= 0 && prctl(PR_CAPBSET_READ, CAP_CHOWN) >= 0,
	    "prctl");
	return true;
}

bool credentials(unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++)
		if (!asked() || !apart(lowered, 0, "root") || !apart(filtered, 0, "CONFIG_SECCOMP") || !controlled())
			return false;
	return true;
}

/* namespaces: a container is made, used and torn down. */

static bool mounted(void)
{
	char text[32];

	TRY(mkdir("root", 0755) == 0, "mkdir");
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return rmdir("root") == 0 && lacks("CAP_SYS_ADMIN");
	TRY(mount("some", "root", "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,mode=755") == 0, "mount");
	TRY(mkdir("root/proc", 0755) == 0 && mkdir("root/a", 0755) == 0 && mkdir("root/b", 0755) == 0 &&
		    put_file("root/a/file", "below", 5, 0644),
	    "files of a mount");
	TRY(mount("root/a", "root/b", NULL, MS_BIND, NULL) == 0 &&
		    get_file("root/b/file", text, sizeof(text)) == 5 && same(text, "below", 5),
	    "a bind mount");
	TRY(mount(NULL, "root/b", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0 &&
		    !put_file("root/b/other", "x", 1, 0644) && errno == EROFS,
	    "a read-only mount");
	TRY(umount2("root/b", MNT_DETACH) == 0 && umount("root") == 0 && rmdir("root") == 0, "umount");
	return true;
}

/* Stacked file systems: what is written goes to the upper one. */
static bool stacked(void)
{
	char text[32];

	TRY(mkdir("stack", 0755) == 0 && mount("some", "stack", "tmpfs", 0, "size=2m") == 0, "mount");
	TRY(mkdir("stack/low", 0755) == 0 && mkdir("stack/up", 0755) == 0 && mkdir("stack/work", 0755) == 0 &&
		    mkdir("stack/all", 0755) == 0 && put_file("stack/low/file", "old", 3, 0644),
	    "files of a stack");
	const bool known = mount("over", "stack/all", "overlay", 0,
				 "lowerdir=stack/low,upperdir=stack/up,workdir=stack/work") == 0;
	if (!known && errno != EINVAL && !lacks("CONFIG_OVERLAY_FS"))
		return false;
	if (known) {
		TRY(put_file("stack/all/file", "newer", 5, 0644) && get_file("stack/low/file", text, 32) == 3 &&
			    get_file("stack/all/file", text, 32) == 5 && same(text, "newer", 5) &&
			    unlink("stack/all/file") == 0,
		    "a stack of file systems");
		TRY(umount("stack/all") == 0, "umount");
	}
	return umount("stack") == 0 && rmdir("stack") == 0;
}

/* Its first process sees itself as the first, and its end is the end of the others. */
static bool first_process(void)
{
	int status;

	if (unshare(CLONE_NEWPID) != 0)
		return errno == EINVAL ? without("CONFIG_PID_NS") : lacks("CONFIG_PID_NS");
	const pid_t child = fork();
	if (child == 0) {
		const pid_t inner = fork();
		if (inner == 0)
			for (;;)
				pause();
		_exit(getpid() == 1 && inner == 2 && kill(2, 0) == 0 ? 7 : 1);
	}
	return (child > 0 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7) ||
	       fault("the first process of a namespace");
}

static bool contained(unsigned round)
{
	char name[80] = "";
	char map[64];
	static const struct {
		int flag;
		const char *needs;
	} kinds[] = {
		{CLONE_NEWUTS, "CONFIG_UTS_NS"},
		{CLONE_NEWIPC, "CONFIG_IPC_NS"},
		{CLONE_NEWNET, "CONFIG_NET_NS"},
		{CLONE_NEWCGROUP, "CONFIG_CGROUPS"},
	};
	const unsigned user = getuid();
	const unsigned group = getgid();

	if (round % 2 && unshare(CLONE_NEWUSER) == 0) {
		snprintf(map, sizeof(map), "0 %u 1", user);
		TRY(put_setting("/proc/self/uid_map", map) && getuid() == 0, "a map of users");
		snprintf(map, sizeof(map), "0 %u 1", group);
		TRY(put_setting("/proc/self/setgroups", "deny") && put_setting("/proc/self/gid_map", map),
		    "a map of groups");
	}
	if (unshare(CLONE_NEWNS) != 0)
		return lacks("CONFIG_NAMESPACES");
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (unshare(kinds[i].flag) != 0 && !(errno == EINVAL ? without(kinds[i].needs) : lacks(kinds[i].needs)))
			return false;
		else if (kinds[i].flag == CLONE_NEWUTS && sethostname("box", 3) == 0)
			TRY(gethostname(name, sizeof(name)) == 0 && strcmp(name, "box") == 0, "a host's name");
	return mounted() && stacked() && first_process();
}

/* Groups of processes with limits, on either version of cgroups. */
static bool grouped(unsigned rounds)
{
	char path[120];
	char text[400];
	char number[16];

	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return lacks("CONFIG_NAMESPACES");
	TRY(mkdir("groups", 0755) == 0, "mkdir");
	if (mount("cgroup", "groups", "cgroup2", 0, NULL) != 0)
		return rmdir("groups") == 0 && lacks("CONFIG_CGROUPS");
	snprintf(number, sizeof(number), "%d", (int)getpid());
	for (unsigned round = 0; round < 3 * rounds; round++) {
		snprintf(path, sizeof(path), "groups/general-%s", number);
		if (mkdir(path, 0755) != 0)
			return lacks("CONFIG_CGROUPS");
		strcat(path, "/cgroup.procs");
		TRY(put_setting(path, number), "enter a group");
		TRY(get_file("/proc/self/cgroup", text, sizeof(text)) > 0 && strstr(text, "general-") != NULL, "a group");
		const pid_t child = fork_child();
		if (child == 0)
			leave(get_file(path, text, sizeof(text)) > 0);
		TRY(child > 0 && reap(child) && put_setting("groups/cgroup.procs", number), "leave a group");
		*strrchr(path, '/') = '\0';
		/* The child may not be quite gone. */
		for (int tries = 0; rmdir(path) != 0; tries++) {
			TRY(errno == EBUSY && tries < 100, "remove a group");
			usleep(1000);
		}
	}
	return umount("groups") == 0 && rmdir("groups") == 0;
}

bool namespaces(unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++)
		if (!apart(contained, round, "CONFIG_NAMESPACES"))
			return false;
	/* The group of this program is no one else's concern in a guest alone. */
	return !in_guest() || apart(grouped, rounds, "CONFIG_CGROUPS");
}
