/* Processes, the programs that they become, and threads. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <unistd.h>

#include "general.h"

#define CHILDREN 5
#define INHERITED 37

extern char **environ;

/* Wait for any child of a group by one of three calls; its status is in the family's order. */
static bool wait_for(unsigned way, pid_t child, int expected)
{
	int status = 0;
	siginfo_t info = {0};
	struct rusage usage;

	switch (way % 3) {
	case 0:
		TRY(wait4(child, &status, 0, &usage) == child, "wait4");
		break;
	case 1:
		TRY(waitid(P_PID, (id_t)child, &info, WEXITED) == 0 && info.si_code == CLD_EXITED,
		    "waitid");
		status = info.si_status << 8;
		break;
	default:
		TRY(waitpid(child, &status, 0) == child, "waitpid");
	}
	return (WIFEXITED(status) && WEXITSTATUS(status) == expected + damaged()) ||
	       fault("a child's exit status");
}

/* Children that change some of the memory that they inherit, and have children themselves. */
static bool family(unsigned round)
{
	pid_t children[CHILDREN];
	unsigned char *memory = mmap(NULL, INHERITED * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	TRY(memory != MAP_FAILED, "mmap");
	for (size_t i = 0; i < INHERITED; i++)
		memory[i * PAGE] = (unsigned char)i;
	for (unsigned i = 0; i < CHILDREN; i++) {
		children[i] = fork();
		TRY(children[i] >= 0, "fork");
		if (children[i] > 0)
			continue;
		for (size_t page = i; page < INHERITED; page += 7)
			memory[page * PAGE]++;
		const pid_t grandchild = i < 2 ? fork() : -1;
		if (grandchild == 0)
			_exit(memory[i * PAGE]);
		_exit(grandchild < 0 || wait_for(i, grandchild, (int)i + 1) ? (int)(40 + i) : 1);
	}
	/* Last in, first out in every second round. */
	for (unsigned i = 0; i < CHILDREN; i++) {
		const unsigned at = round % 2 ? CHILDREN - 1 - i : i;
		if (!wait_for(at + round, children[at], (int)(40 + at)))
			return false;
	}
	for (size_t i = 0; i < INHERITED; i++)
		TRY(memory[i * PAGE] == i, "memory that a child changed");
	return munmap(memory, INHERITED * PAGE) == 0;
}

static bool by_vfork(void)
{
	for (int i = 0; i < 12; i++) {
		const pid_t child = vfork();
		if (child == 0)
			_exit(60 + i);
		TRY(child > 0, "vfork");
		if (!wait_for((unsigned)i, child, 60 + i))
			return false;
	}
	return true;
}

/* A process that is known by a descriptor: polled, signalled and waited for by it. */
static bool by_descriptor(void)
{
	siginfo_t info = {0};
	int ready[2];
	char byte;

	TRY(pipe2(ready, O_CLOEXEC) == 0, "pipe2");
	const pid_t child = fork();
	TRY(child >= 0, "fork");
	if (child == 0) {
		close(ready[1]);
		_exit(read(ready[0], &byte, 1) == 0 ? 9 : 1);
	}
	const int fd = (int)syscall(SYS_pidfd_open, child, 0);
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	const bool known = fd >= 0 && poll(&poller, 1, 0) == 0 &&
			   syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0;
	const int error = errno;
	close(ready[0]);
	close(ready[1]);
	if (!known) {
		const bool reaped = waitpid(child, NULL, 0) == child;
		errno = error;
		return lacks("pidfd_open") && reaped;
	}
	TRY(poll(&poller, 1, -1) == 1, "poll a process");
	TRY(waitid((idtype_t)3 /* P_PIDFD */, (id_t)fd, &info, WEXITED) == 0 && info.si_status == 9,
	    "wait by a descriptor");
	return close(fd) == 0;
}

static bool by_clone3(void)
{
	int pidfd = -1;
	struct clone_args arguments = {
		.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	const long child = syscall(SYS_clone3, &arguments, sizeof(arguments));

	if (child < 0)
		return lacks("clone3");
	if (child == 0)
		_exit(33);
	return wait_for(2, (pid_t)child, 33) && close(pidfd) == 0;
}

/* Groups and sessions; stopped, continued and killed. */
static bool job_control(void)
{
	int status;
	const pid_t first = fork_child();

	TRY(first >= 0, "fork");
	if (first == 0) {
		setpgid(0, 0);
		for (;;)
			pause();
	}
	TRY(setpgid(first, first) == 0 && getpgid(first) == first, "setpgid");
	const pid_t second = fork_child();
	TRY(second >= 0, "fork");
	if (second == 0) {
		setpgid(0, first);
		for (;;)
			pause();
	}
	TRY(setpgid(second, first) == 0, "join a group");
	TRY(kill(-first, SIGSTOP) == 0, "stop a group");
	TRY(waitpid(first, &status, WUNTRACED) == first && WIFSTOPPED(status), "a stopped child");
	TRY(waitpid(second, &status, WUNTRACED) == second && WIFSTOPPED(status), "a stopped child");
	TRY(kill(-first, SIGCONT) == 0, "continue a group");
	TRY(waitpid(first, &status, WCONTINUED) == first && WIFCONTINUED(status), "a continued child");
	TRY(waitpid(second, &status, WCONTINUED) == second && WIFCONTINUED(status),
	    "a continued child");
	TRY(killpg(first, SIGTERM) == 0, "killpg");
	for (int i = 0; i < 2; i++)
		TRY(waitpid(-first, &status, 0) > 0 && WTERMSIG(status) == SIGTERM, "a killed child");
	return true;
}

/* A grandchild whose parent ends first becomes ours. */
static bool adopted(void)
{
	int status;
	int told[2];
	pid_t grandchild;

	TRY(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && pipe(told) == 0, "become a subreaper");
	const pid_t child = fork();
	TRY(child >= 0, "fork");
	if (child == 0) {
		const pid_t other = fork();
		if (other == 0) {
			setsid();
			_exit(getsid(0) == getpid() ? 21 : 1);
		}
		_exit(write(told[1], &other, sizeof(other)) == sizeof(other) ? 0 : 1);
	}
	TRY(read(told[0], &grandchild, sizeof(grandchild)) == sizeof(grandchild), "a process's number");
	TRY(waitpid(child, &status, 0) == child && status == 0, "the end of a parent");
	TRY(waitpid(grandchild, &status, 0) == grandchild && WEXITSTATUS(status) == 21,
	    "the end of an adopted child");
	close(told[0]);
	close(told[1]);
	return prctl(PR_SET_CHILD_SUBREAPER, 0) == 0;
}

/* Limits and what a process has used. */
static bool accounts(void)
{
	struct rlimit limit;
	struct rlimit lower;
	struct rusage usage;
	struct tms spent;

	for (int resource = 0; resource < 16; resource++)
		TRY(getrlimit(resource, &limit) == 0, "getrlimit");
	TRY(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
	lower = limit;
	lower.rlim_cur = limit.rlim_max > 64 ? 64 : limit.rlim_max;
	TRY(setrlimit(RLIMIT_NOFILE, &lower) == 0 && dup2(0, 64) == -1 && errno == EBADF, "a limit");
	TRY(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
	TRY(getrusage(RUSAGE_CHILDREN, &usage) == 0 && usage.ru_minflt > 0, "getrusage");
	return times(&spent) != (clock_t)-1;
}

bool processes(unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++) {
		if (!family(round) || !by_vfork() || !by_descriptor() || !by_clone3() || !job_control() ||
		    !adopted() || !accounts())
			return false;
		/* Children of no interest are reaped by the kernel. */
		signal(SIGCHLD, SIG_IGN);
		const pid_t child = fork();
		if (child == 0)
			_exit(3);
		TRY(child > 0 && waitpid(child, NULL, 0) == -1 && errno == ECHILD, "an ignored child");
		signal(SIGCHLD, SIG_DFL);
	}
	return true;
}

/* programs: the smallest ELF files, made here: one ends with the number of its arguments. */

#define NO_PROGRAM 126

#ifdef __x86_64__
#define MACHINE EM_X86_64
/* mov (%rsp), %edi; mov $60, %eax; syscall */
static const unsigned char code[] = {0x8b, 0x3c, 0x24, 0xb8, 60, 0, 0, 0, 0x0f, 0x05};
#else
#define MACHINE EM_AARCH64
/* ldr w0, [sp]; mov w8, #93; svc #0 */
static const unsigned char code[] = {0xe0, 0x03, 0x40, 0xb9, 0xa8, 0x0b,
				     0x80, 0x52, 0x01, 0x00, 0x00, 0xd4};
#endif

/* With an interpreter that the kernel loads beside it, or without one. */
static bool make_program(const char *name, const char *interpreter, unsigned type)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segments[4];
		char interpreter[256];
		unsigned char code[64];
	} file = {
		.header = {
			.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			.e_type = (Elf64_Half)type,
			.e_machine = MACHINE,
			.e_version = EV_CURRENT,
			.e_phoff = sizeof(Elf64_Ehdr),
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_phentsize = sizeof(Elf64_Phdr),
		},
	};
	const Elf64_Addr base = type == ET_DYN ? 0 : 0x10000000;
	unsigned count = 0;

	file.header.e_entry = base + offsetof(__typeof__(file), code);
	if (interpreter != NULL) {
		const size_t size = strlen(interpreter) + 1;
		memcpy(file.interpreter, interpreter, size);
		file.segments[count++] = (Elf64_Phdr){
			.p_type = PT_INTERP,
			.p_offset = offsetof(__typeof__(file), interpreter),
			.p_filesz = size,
			.p_memsz = size,
			.p_flags = PF_R,
		};
	}
	file.segments[count++] = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_vaddr = base,
		.p_filesz = sizeof(file),
		.p_memsz = sizeof(file),
		.p_flags = PF_R | PF_X,
		.p_align = 0x10000,
	};
	/* Data beyond the file's end: zeroes that the kernel adds. */
	file.segments[count++] = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_vaddr = base + 0x20000,
		.p_filesz = sizeof(file),
		.p_memsz = sizeof(file) + 3 * PAGE,
		.p_flags = PF_R | PF_W,
		.p_align = 0x10000,
	};
	file.segments[count++] = (Elf64_Phdr){.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W};
	file.header.e_phnum = (Elf64_Half)count;
	memcpy(file.code, code, sizeof(code));
	return put_file(name, &file, sizeof(file), 0755) || fault("write a program");
}

enum way { BY_PATH, BY_SEARCH, BY_DESCRIPTOR, BY_DIRECTORY };

static int become(enum way way, const char *name, char *const *argv, char *const *environment)
{
	int fd;

	switch (way) {
	case BY_PATH:
		return execve(name, argv, environment);
	case BY_SEARCH:
		setenv("PATH", "/no/such:/usr/no:/etc:.", 1);
		return execvp(name, argv);
	case BY_DESCRIPTOR:
		fd = open(name, O_RDONLY | O_CLOEXEC);
		return (int)syscall(SYS_execveat, fd, "", argv, environment, AT_EMPTY_PATH);
	default:
		fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		return (int)syscall(SYS_execveat, fd, name, argv, environment, 0);
	}
}

static bool start(enum way way, const char *name, unsigned arguments, size_t length, int expected)
{
	char *argv[256];
	static char text[4096];

	memset(text, 'x', sizeof(text));
	text[length] = '\0';
	for (unsigned i = 0; i < arguments; i++)
		argv[i] = text;
	argv[arguments] = NULL;
	const pid_t child = fork();
	TRY(child >= 0, "fork");
	if (child == 0) {
		/* Descriptors that the program must not have. */
		for (int i = 0; i < 9; i++)
			fcntl(0, F_DUPFD_CLOEXEC, 20 + 10 * i);
		become(way, name, argv, way == BY_PATH ? argv : environ);
		_exit(errno == ENOSYS ? 77 : NO_PROGRAM);
	}
	return wait_for(arguments, child, expected);
}

static bool spawned(void)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	char *argv[] = {"./least", "two", "three", NULL};
	pid_t child;
	sigset_t none;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 7, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&files, 7, STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&files, 7);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigmask(&attributes, &none);
	errno = posix_spawn(&child, "./least", &files, &attributes, argv, environ);
	TRY(errno == 0, "posix_spawn");
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return wait_for(1, child, 3);
}

/* What cannot be executed is refused, each by its own error. */
static bool refused(void)
{
	char *argv[] = {"no", NULL};

	TRY(execve("missing", argv, environ) == -1 && errno == ENOENT, "a missing program");
	TRY(execve("text", argv, environ) == -1 && errno == ENOEXEC, "a program that is text");
	TRY(execve("plain", argv, environ) == -1 && errno == EACCES, "a program without its bit");
	TRY(execve(".", argv, environ) == -1 && errno == EACCES, "a directory as a program");
	TRY(execve("text/below", argv, environ) == -1 && errno == ENOTDIR, "a file as a directory");
	return true;
}

bool programs(unsigned rounds)
{
	char here[200];
	char interpreter[256];
	char script[300];

	TRY(getcwd(here, sizeof(here)) != NULL, "getcwd");
	snprintf(interpreter, sizeof(interpreter), "%s/loader", here);
	snprintf(script, sizeof(script), "#!%s/least --flag\nnothing\n", here);
	if (!make_program("least", NULL, ET_EXEC) || !make_program("loader", NULL, ET_DYN) ||
	    !make_program("loaded", interpreter, ET_DYN))
		return false;
	TRY(put_file("script", script, strlen(script), 0755) && put_file("text", "plain text", 10, 0755) &&
	    put_file("plain", "x", 1, 0644), "write files");
	for (unsigned round = 0; round < rounds; round++) {
		if (!start(BY_PATH, "./least", 1 + round % 3, 9, 1 + (int)(round % 3)) ||
		    !start(BY_PATH, "./loaded", 70, 130, 70) ||
		    !start(BY_SEARCH, "loaded", 2, 20, 2) ||
		    !start(BY_DESCRIPTOR, "least", 5, 600, 5) ||
		    !start(BY_DIRECTORY, "loaded", 150, 40, 150) ||
		    /* The script's path and its flag come in front. */
		    !start(BY_PATH, "./script", 4, 30, 6) || !start(BY_SEARCH, "script", 1, 3000, 3) ||
		    !spawned() || !refused())
			return false;
	}
	for (size_t i = 0; i < 6; i++)
		TRY(unlink((const char *[]){"least", "loader", "loaded", "script", "text", "plain"}[i]) == 0,
		    "unlink");
	return true;
}

/* scripts: a shell with loops, pipelines, substitutions and redirections. */

#define SHELL "/bin/busybox"

static const char script_text[] =
	"set -e\n"
	"n=0; total=0\n"
	"while [ $n -lt 12 ]; do\n"
	"  mkdir -p tree/d$n/e\n"
	"  printf 'name=%s\\nvalue=%d\\n' item$n $((n * n)) > tree/d$n/e/data\n"
	"  total=$((total + n * n)); n=$((n + 1))\n"
	"done\n"
	"b=" SHELL "\n"
	"sum=$(cat tree/*/e/data | $b sed -n 's/^value=//p' | $b awk '{ s += $1 } END { print s }')\n"
	"[ $sum = $total ]\n"
	"$b find tree -name data -type f | $b cut -d/ -f2 | $b tr d D > list\n"
	"$b tar cf - tree | (mkdir copy; cd copy; exec $b tar xf -)\n"
	"$b diff -r tree copy/tree\n"
	"( $b cp list list2; $b mv list2 list3; $b ln -s list3 link; $b head -n 3 link ) | while read x\n"
	"do echo \"$x\" >> heads; done\n"
	"$b sleep 0.003 & wait\n"
	"trap 'rm -rf tree copy list list3 link heads' EXIT\n"
	"$b md5sum < heads | { read sum name; [ ${#sum} -eq 32 ]; }\n"
	"exit 23\n";

bool scripts(unsigned rounds)
{
	if (access(SHELL, X_OK) != 0)
		return without("shell");
	TRY(put_file("run", script_text, sizeof(script_text) - 1, 0755), "write a script");
	for (unsigned round = 0; round < rounds; round++) {
		const pid_t child = fork_child();
		TRY(child >= 0, "fork");
		if (child == 0) {
			execl(SHELL, "sh", "run", (char *)NULL);
			_exit(NO_PROGRAM);
		}
		if (!wait_for(round, child, 23))
			return false;
	}
	return unlink("run") == 0;
}

/* threads: short and long lives, with stacks of their own sizes, names, and private memory. */

#define CREW 7

static pthread_key_t key;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_here = PTHREAD_COND_INITIALIZER;
static sem_t gone;
static unsigned present;
static unsigned released;
static __thread unsigned mine;

struct member {
	pthread_t thread;
	unsigned number;
	unsigned result;
};

static void at_end(void *value)
{
	((struct member *)value)->result += 1000;
}

/* Meets the others, works in its own memory, and names itself. */
static void *life(void *argument)
{
	struct member *me = argument;
	char name[16];
	char read_back[16] = "";

	pthread_setspecific(key, me);
	snprintf(name, sizeof(name), "crew-%u", me->number);
	prctl(PR_SET_NAME, name);
	mine = me->number;
	pthread_mutex_lock(&guard);
	if (++present == CREW)
		pthread_cond_broadcast(&all_here);
	while (present < CREW)
		pthread_cond_wait(&all_here, &guard);
	pthread_mutex_unlock(&guard);
	void *own = malloc(20000 + 30000 * me->number);
	if (own != NULL)
		memset(own, (int)me->number, 20000 + 30000 * me->number);
	free(own);
	sched_yield();
	prctl(PR_GET_NAME, read_back);
	if (strcmp(name, read_back) == 0 && mine == me->number &&
	    syscall(SYS_gettid) != getpid())
		me->result = me->number * 3 + damaged();
	return me;
}

static void *passing(void *argument)
{
	(void)argument;
	__atomic_add_fetch(&released, 1, __ATOMIC_SEQ_CST);
	sem_post(&gone);
	return NULL;
}

static bool crew(unsigned round)
{
	struct member members[CREW] = {0};
	pthread_attr_t attributes;

	present = 0;
	pthread_attr_init(&attributes);
	for (unsigned i = 0; i < CREW; i++) {
		members[i].number = i + 1;
		pthread_attr_setstacksize(&attributes, (32 + 48 * ((i + round) % 5)) * KIB);
		errno = pthread_create(&members[i].thread, &attributes, life, &members[i]);
		TRY(errno == 0, "create a thread");
	}
	for (unsigned i = CREW; i-- > 0;) {
		void *result;
		TRY(pthread_join(members[i].thread, &result) == 0 && result == &members[i], "join");
	}
	/* Not before all have ended: they use the members, which are gone after a wrong result. */
	for (unsigned i = CREW; i-- > 0;)
		TRY(members[i].result == (i + 1) * 3 + 1000, "what a thread did");
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	released = 0;
	for (unsigned i = 0; i < 9; i++) {
		pthread_t thread;
		TRY(pthread_create(&thread, &attributes, passing, NULL) == 0, "create a thread");
	}
	for (unsigned i = 0; i < 9; i++)
		TRY(sem_wait(&gone) == 0, "sem_wait");
	TRY(released == 9, "what detached threads did");
	return pthread_attr_destroy(&attributes) == 0;
}

/* A process that ends, or becomes another program, while it has threads. */
static void *endless(void *argument)
{
	(void)argument;
	for (;;)
		pause();
	return NULL;
}

static bool end_of_many(void)
{
	const pid_t child = fork();

	TRY(child >= 0, "fork");
	if (child == 0) {
		pthread_t thread;
		for (int i = 0; i < 3; i++)
			if (pthread_create(&thread, NULL, endless, NULL) != 0)
				_exit(1);
		pthread_kill(thread, 0);
		_exit(54);
	}
	return wait_for(0, child, 54);
}

bool threads(unsigned rounds)
{
	TRY(pthread_key_create(&key, at_end) == 0 && sem_init(&gone, 0, 0) == 0, "thread's memory");
	for (unsigned round = 0; round < rounds; round++)
		if (!crew(round) || !end_of_many())
			return false;
	return true;
}
