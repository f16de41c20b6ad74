/* Waiting for many things at once: epoll, poll, select, and what can be waited for. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "general.h"

#define MANY 70
#define JOBS 90

/* One loop over many pipes, some of which report once, or only changes. */
static bool loop_of_pipes(unsigned round)
{
	int ends[MANY][2];
	struct epoll_event events[16];
	const int loop = epoll_create1(EPOLL_CLOEXEC);
	const int outer = epoll_create1(EPOLL_CLOEXEC);
	char byte;
	unsigned seen = 0;

	if (loop < 0)
		return lacks("CONFIG_EPOLL");
	for (unsigned i = 0; i < MANY; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};
		event.events |= i % 3 == 0 ? (uint32_t)EPOLLET : i % 3 == 1 ? (uint32_t)EPOLLONESHOT : 0;
		TRY(pipe2(ends[i], O_NONBLOCK | O_CLOEXEC) == 0 &&
			    epoll_ctl(loop, EPOLL_CTL_ADD, ends[i][0], &event) == 0,
		    "watch a pipe");
	}
	struct epoll_event inner = {.events = EPOLLIN};
	TRY(epoll_ctl(outer, EPOLL_CTL_ADD, loop, &inner) == 0 && epoll_wait(outer, events, 1, 0) == 0,
	    "a loop in a loop");
	for (unsigned wave = 0; wave < 3; wave++) {
		for (unsigned i = 0; i < MANY; i += 1 + wave)
			TRY(write(ends[(i * 29 + round) % MANY][1], "abc", 3) == 3, "write to a pipe");
		TRY(epoll_wait(outer, events, 1, 1000) == 1, "a loop in a loop");
		for (int ready; (ready = epoll_wait(loop, events, COUNT(events), 0)) > 0;) {
			for (int n = 0; n < ready; n++) {
				const unsigned i = (unsigned)events[n].data.u64;
				struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = i};
				while (read(ends[i][0], &byte, 1) == 1)
					seen++;
				if (i % 3 == 1)
					TRY(epoll_ctl(loop, EPOLL_CTL_MOD, ends[i][0], &event) == 0, "watch again");
			}
		}
	}
	TRY(seen == 3 * (MANY + MANY / 2 + (MANY + 2) / 3) + (unsigned)damaged(), "what came through the pipes");
	for (unsigned i = 0; i < MANY; i++) {
		/* Some are forgotten by being closed. */
		if (i % 2)
			TRY(epoll_ctl(loop, EPOLL_CTL_DEL, ends[i][0], NULL) == 0, "EPOLL_CTL_DEL");
		TRY(close(ends[i][1]) == 0 && close(ends[i][0]) == 0, "close");
	}
	return close(loop) == 0 && close(outer) == 0;
}

/* Workers that wait in one loop for jobs from another thread. */
static int jobs[2];
static int work_loop;
static _Atomic unsigned finished;

static void *worker(void *argument)
{
	struct epoll_event event;
	unsigned job;

	while (epoll_wait(work_loop, &event, 1, -1) == 1) {
		if (read(jobs[0], &job, sizeof(job)) != sizeof(job)) {
			if (errno == EAGAIN)
				continue;
			break;
		}
		if (job == 0)
			return argument;
		atomic_fetch_add(&finished, job);
	}
	return NULL;
}

static bool workers(void)
{
	pthread_t crew[3];
	struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE};

	atomic_store(&finished, 0);
	work_loop = epoll_create1(EPOLL_CLOEXEC);
	TRY(work_loop >= 0 && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, jobs) == 0 &&
		    epoll_ctl(work_loop, EPOLL_CTL_ADD, jobs[0], &event) == 0,
	    "a loop for workers");
	TRY(fcntl(jobs[1], F_SETFL, 0) == 0, "F_SETFL");
	for (uintptr_t i = 0; i < 3; i++)
		TRY(pthread_create(&crew[i], NULL, worker, (void *)(i + 1)) == 0, "create a thread");
	for (unsigned i = 1; i <= JOBS + 3; i++) {
		const unsigned job = i <= JOBS ? i : 0;
		TRY(write(jobs[1], &job, sizeof(job)) == sizeof(job), "give a job");
		if (i % 10 == 0)
			sched_yield();
	}
	for (int i = 0; i < 3; i++) {
		void *result;
		TRY(pthread_join(crew[i], &result) == 0 && result != NULL, "a worker");
	}
	TRY(atomic_load(&finished) == JOBS * (JOBS + 1) / 2, "the jobs");
	return close(work_loop) == 0 && close(jobs[0]) == 0 && close(jobs[1]) == 0;
}

/* The older calls, over descriptors of several kinds. */
static bool older(void)
{
	int ends[2];
	int pair[2];
	uint64_t count = 0xfffffffffffffffe;
	fd_set readable;
	fd_set writable;
	const int counter = eventfd(3, EFD_NONBLOCK | EFD_SEMAPHORE);
	const int file = open("file", O_RDWR | O_CREAT, 0600);

	TRY(counter >= 0 && file >= 0 && pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0,
	    "descriptors");
	struct pollfd pollers[] = {
		{.fd = counter, .events = POLLIN | POLLOUT}, {.fd = file, .events = POLLIN},
		{.fd = ends[0], .events = POLLIN},	     {.fd = ends[1], .events = POLLOUT},
		{.fd = pair[0], .events = POLLIN | POLLRDHUP}, {.fd = -1},
		{.fd = 987, .events = POLLIN},
	};
	for (int i = 0; i < 9; i++) {
		TRY(poll(pollers, COUNT(pollers), 0) == 4 + (i > 5) && pollers[6].revents == POLLNVAL, "poll");
		FD_ZERO(&readable);
		FD_ZERO(&writable);
		FD_SET(counter, &readable);
		FD_SET(ends[0], &readable);
		FD_SET(pair[0], &readable);
		FD_SET(ends[1], &writable);
		TRY(select(64, &readable, &writable, NULL, &(struct timeval){0}) == 2 + (i > 5) &&
			    FD_ISSET(ends[1], &writable) && !FD_ISSET(ends[0], &readable),
		    "select");
		if (i == 5)
			TRY(shutdown(pair[1], SHUT_WR) == 0, "shutdown");
	}
	for (uint64_t expected = 3; expected > 0; expected--)
		TRY(read(counter, &count, sizeof(count)) == sizeof(count) && count == 1, "a semaphore");
	TRY(read(counter, &count, sizeof(count)) == -1 && errno == EAGAIN, "a semaphore at zero");
	TRY(close(counter) == 0 && close(file) == 0 && unlink("file") == 0, "close");
	for (int i = 0; i < 2; i++)
		TRY(close(ends[i]) == 0 && close(pair[i]) == 0, "close");
	return true;
}

/* Signals and changes of files, read as records. */
static bool records(void)
{
	struct signalfd_siginfo info;
	sigset_t set;
	sigset_t before;
	_Alignas(struct inotify_event) char changes[2000];

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN + 2);
	sigprocmask(SIG_BLOCK, &set, &before);
	const int signals_of = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals_of < 0 && !lacks("CONFIG_SIGNALFD"))
		return false;
	for (int i = 0; i < 6 && signals_of >= 0; i++) {
		TRY(sigqueue(getpid(), SIGRTMIN + 2, (union sigval){.sival_int = i}) == 0 && raise(SIGUSR1) == 0,
		    "sigqueue");
		TRY(read(signals_of, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR1, "a signal");
		TRY(read(signals_of, &info, sizeof(info)) == sizeof(info) && info.ssi_int == i, "a signal's value");
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (signals_of >= 0)
		TRY(close(signals_of) == 0, "close");
	const int watcher = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watcher < 0)
		return lacks("CONFIG_INOTIFY_USER");
	TRY(mkdir("watched", 0700) == 0, "mkdir");
	const int watch = inotify_add_watch(watcher, "watched", IN_ALL_EVENTS);
	TRY(watch >= 0 && put_file("watched/one", "1", 1, 0600) && rename("watched/one", "watched/two") == 0 &&
		    unlink("watched/two") == 0,
	    "changes");
	uint32_t seen = 0;
	const ssize_t got = read(watcher, changes, sizeof(changes));
	for (ssize_t at = 0; at < got;) {
		const struct inotify_event *event = (const struct inotify_event *)(changes + at);
		seen |= event->mask;
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	const uint32_t expected = IN_CREATE | IN_OPEN | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE;
	TRY((seen & expected) == expected, "the changes of a directory");
	TRY(inotify_rm_watch(watcher, watch) == 0 && close(watcher) == 0 && rmdir("watched") == 0, "unwatch");
	return true;
}

/* A producer adds to one counter until it is full; its consumer empties it and adds to another. */
static bool counted(void)
{
	uint64_t given = 0;
	uint64_t taken = 0;
	uint64_t count;
	const int work = eventfd(0, EFD_CLOEXEC);
	const int credit = eventfd(3, EFD_CLOEXEC);

	if (work < 0 || credit < 0)
		return lacks("CONFIG_EVENTFD");
	const pid_t child = fork_child();
	if (child == 0) {
		for (bool last = false; !last;) {
			if (read(work, &count, sizeof(count)) != sizeof(count))
				leave(false);
			last = count >= 1u << 20;
			count = 2;
			if (write(credit, &count, sizeof(count)) != sizeof(count))
				leave(false);
		}
		leave(true);
	}
	for (unsigned i = 0; i < 40; i++) {
		fd_set ready;
		FD_ZERO(&ready);
		FD_SET(credit, &ready);
		TRY(pselect(credit + 1, &ready, NULL, NULL, NULL, NULL) == 1 &&
			    read(credit, &count, sizeof(count)) == sizeof(count),
		    "wait for a counter");
		taken += count;
		count = i < 39 ? i + 1 : 1u << 20;
		given += count;
		TRY(write(work, &count, sizeof(count)) == sizeof(count), "add to a counter");
	}
	TRY(child > 0 && reap(child) && taken >= 3 && given > 1u << 20, "counters of two processes");
	return close(work) == 0 && close(credit) == 0;
}

bool polling(unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++)
		if (!loop_of_pipes(round) || !workers() || !older() || !records() || !counted())
			return false;
	return true;
}
