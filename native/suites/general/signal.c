/* Signals: sent, blocked, queued, waited for, and handled on a stack of their own. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "general.h"

static volatile sig_atomic_t counts[70];
static volatile sig_atomic_t depth;
static volatile sig_atomic_t deepest;
static volatile sig_atomic_t value;
static void *volatile frame;

static void count(int number)
{
	counts[number]++;
}

/* Raises another signal while it runs, so that handlers nest. */
static void nest(int number, siginfo_t *info, void *context)
{
	volatile char here;

	(void)context;
	counts[number]++;
	value = info->si_value.sival_int;
	frame = (void *)&here;
	if (++depth > deepest)
		deepest = depth;
	if (number == SIGUSR1)
		raise(SIGUSR2);
	depth--;
}

static bool handled(void)
{
	static unsigned char stack[64 * KIB];
	const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
	stack_t before;
	struct sigaction action = {.sa_sigaction = nest, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	memset((void *)counts, 0, sizeof(counts));
	deepest = 0;
	TRY(sigaltstack(&other, &before) == 0, "sigaltstack");
	sigfillset(&action.sa_mask);
	sigdelset(&action.sa_mask, SIGUSR2);
	TRY(sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGUSR2, &action, NULL) == 0, "sigaction");
	for (int i = 0; i < 25; i++) {
		if (i % 3 == 0)
			TRY(kill(getpid(), SIGUSR1) == 0, "kill");
		else if (i % 3 == 1)
			TRY(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1) == 0, "tgkill");
		else
			TRY(pthread_kill(pthread_self(), SIGUSR1) == 0, "pthread_kill");
	}
	TRY(counts[SIGUSR1] == 25 + damaged() && counts[SIGUSR2] == 25 && deepest == 2, "handled signals");
	TRY((unsigned char *)frame >= stack && (unsigned char *)frame < stack + sizeof(stack), "a signal's stack");
	TRY(sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL) == 0, "sigaltstack");
	signal(SIGUSR1, SIG_DFL);
	signal(SIGUSR2, SIG_DFL);
	return true;
}

/* Blocked ones wait; those of real time keep their order and values, the others merge. */
static bool queued(void)
{
	sigset_t set;
	sigset_t before;
	sigset_t pending;
	siginfo_t info;
	const struct timespec none = {0};

	sigemptyset(&set);
	for (int i = 0; i < 4; i++)
		sigaddset(&set, SIGRTMIN + i);
	sigaddset(&set, SIGHUP);
	TRY(sigprocmask(SIG_BLOCK, &set, &before) == 0, "sigprocmask");
	for (int i = 0; i < 20; i++)
		TRY(sigqueue(getpid(), SIGRTMIN + i % 4, (union sigval){.sival_int = i}) == 0 && raise(SIGHUP) == 0,
		    "sigqueue");
	TRY(sigpending(&pending) == 0 && sigismember(&pending, SIGRTMIN + 3) && sigismember(&pending, SIGHUP),
	    "sigpending");
	TRY(sigtimedwait(&set, &info, &none) == SIGHUP, "a signal that merged");
	for (int i = 0; i < 20; i++)
		TRY(sigwaitinfo(&set, &info) == SIGRTMIN + i / 5 && info.si_value.sival_int == i % 5 * 4 + i / 5 &&
			    info.si_pid == getpid(),
		    "the order of signals");
	TRY(sigtimedwait(&set, &info, &none) == -1 && errno == EAGAIN, "no signal");
	return sigprocmask(SIG_SETMASK, &before, NULL) == 0;
}

/* Set once the parent's call was interrupted. */
static _Atomic unsigned *noticed;

/* A system call is interrupted, or begun again. */
static bool interrupted(void)
{
	struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
	int ends[2];
	char byte = 0;

	TRY(pipe(ends) == 0, "pipe");
	counts[SIGUSR2] = 0;
	for (int restart = 0; restart < 2; restart++) {
		action.sa_flags = restart ? SA_RESTART : 0;
		sigaction(SIGUSR2, &action, NULL);
		atomic_store(noticed, restart);
		const pid_t parent = getpid();
		const pid_t child = fork_child();
		if (child == 0) {
			/* Until the parent slept in its call when a signal came. */
			for (int i = 0; i < 6 || atomic_load(noticed) == 0; i++) {
				usleep(100);
				if (!restart || i < 3)
					kill(parent, SIGUSR2);
			}
			leave(!restart || write(ends[1], "x", 1) == 1);
		}
		const ssize_t got = read(ends[0], &byte, 1);
		atomic_store(noticed, 1);
		TRY(restart ? got == 1 && byte == 'x' : got == -1 && errno == EINTR, "an interrupted read");
		int status;
		pid_t ended;
		while ((ended = waitpid(child, &status, 0)) == -1 && errno == EINTR)
			;
		TRY(ended == child && status == 0, "the sender of signals");
	}
	TRY(counts[SIGUSR2] > 1, "signals of another process");
	signal(SIGUSR2, SIG_DFL);
	return close(ends[0]) == 0 && close(ends[1]) == 0;
}

/* Two processes that answer each other by signals alone. */
static bool answered(void)
{
	sigset_t set;
	sigset_t before;
	siginfo_t info;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 5);
	sigprocmask(SIG_BLOCK, &set, &before);
	const pid_t child = fork_child();
	if (child == 0) {
		for (int i = 0; i < 30; i++)
			if (sigwaitinfo(&set, &info) < 0 ||
			    sigqueue(info.si_pid, SIGRTMIN + 5, (union sigval){.sival_int = info.si_value.sival_int * 2}) != 0)
				leave(false);
		leave(true);
	}
	for (int i = 0; i < 30; i++) {
		TRY(child > 0 && sigqueue(child, SIGRTMIN + 5, (union sigval){.sival_int = i}) == 0, "sigqueue");
		TRY(sigwaitinfo(&set, &info) > 0 && info.si_value.sival_int == 2 * i && info.si_pid == child, "an answer");
	}
	TRY(reap(child), "a process that answers");
	return sigprocmask(SIG_SETMASK, &before, NULL) == 0;
}

static bool ended_by(void)
{
	static const int fatal[] = {SIGTERM, SIGKILL, SIGABRT, SIGSEGV, SIGFPE, SIGALRM};
	int status;

	for (size_t i = 0; i < COUNT(fatal); i++) {
		const pid_t child = fork_child();
		if (child == 0) {
			signal(fatal[i], SIG_DFL);
			/* Without a core file. */
			raise(fatal[i]);
			_exit(1);
		}
		TRY(child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
			    WTERMSIG(status) == fatal[i],
		    "what ended a process");
	}
	return true;
}

bool signals(unsigned rounds)
{
	noticed = shared_memory(sizeof(*noticed));
	for (unsigned round = 0; round < rounds; round++)
		if (!handled() || !queued() || !interrupted() || !answered() || (round % 4 == 0 && !ended_by()))
			return false;
	return true;
}
