/* Timers and sleeps of every kind; all are short, and none is checked against an upper bound. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "general.h"

#define MANY 40

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
	(void)number;
	alarms++;
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec time = {0};

	/* Raw, because the C library may read the clock without the kernel. */
	if (syscall(SYS_clock_gettime, clock, &time) != 0)
		return -1;
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static bool clocks(void)
{
	static const clockid_t ids[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC,	CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID,
		CLOCK_BOOTTIME, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE,	  CLOCK_MONOTONIC_RAW,
		CLOCK_TAI,
	};
	struct timespec resolution;
	struct timeval now;
	struct timex state = {.modes = 0};

	for (size_t i = 0; i < COUNT(ids); i++) {
		const int64_t first = clock_ns(ids[i]);
		TRY(first >= 0 && clock_ns(ids[i]) >= first, "a clock that goes back");
		TRY(clock_getres(ids[i], &resolution) == 0, "clock_getres");
	}
#ifdef SYS_gettimeofday
	TRY(syscall(SYS_gettimeofday, &now, NULL) == 0 && now.tv_usec < 1000000, "gettimeofday");
#else
	TRY(gettimeofday(&now, NULL) == 0, "gettimeofday");
#endif
	return adjtimex(&state) >= 0 || lacks("adjtimex");
}

/* Sleeps of growing length by different calls. */
static bool sleeps(unsigned round)
{
	for (unsigned i = 0; i < 12; i++) {
		const struct timespec moment = {.tv_nsec = 4000 + 9000 * (long)((i + round) % 6)};
		const struct timeval micro = {.tv_usec = 30 + 10 * (long)i};
		struct timeval copy = micro;
		struct timespec until;
		const int64_t begin = clock_ns(CLOCK_MONOTONIC);
		int64_t least = moment.tv_nsec;

		switch (i % 5) {
		case 0:
			TRY(nanosleep(&moment, NULL) == 0, "nanosleep");
			break;
		case 1:
			clock_gettime(CLOCK_MONOTONIC, &until);
			until.tv_nsec += moment.tv_nsec;
			if (until.tv_nsec >= 1000000000) {
				until.tv_nsec -= 1000000000;
				until.tv_sec++;
			}
			TRY(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0, "sleep until");
			break;
		case 2:
			TRY(poll(NULL, 0, 1) == 0, "poll for a time");
			least = 1000000;
			break;
		case 3:
			TRY(select(0, NULL, NULL, NULL, &copy) == 0, "select for a time");
			least = micro.tv_usec * 1000;
			break;
		default:
			TRY(ppoll(NULL, 0, &moment, NULL) == 0, "ppoll for a time");
		}
		TRY(clock_ns(CLOCK_MONOTONIC) - begin >= least, "a sleep that was too short");
	}
	return true;
}

/* Many at once, of which some are moved and some never end. */
static bool descriptors(void)
{
	struct pollfd pollers[MANY];
	struct itimerspec state;
	uint64_t expirations;
	unsigned expired = 0;

	for (unsigned i = 0; i < MANY; i++) {
		const struct itimerspec soon = {
			.it_value = {.tv_sec = i % 4 == 0 ? 1000 : 0, .tv_nsec = 100000 + 37000 * (long)(i * 17 % MANY)},
			.it_interval = {.tv_nsec = i % 5 == 0 ? 50000 : 0},
		};
		const int fd = timerfd_create(i % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
		if (fd < 0)
			return lacks("CONFIG_TIMERFD");
		TRY(timerfd_settime(fd, 0, &soon, NULL) == 0, "timerfd_settime");
		pollers[i] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	for (unsigned i = 1; i < MANY; i += 6) {
		const struct itimerspec later = {.it_value = {.tv_nsec = 600000}};
		TRY(timerfd_settime(pollers[i].fd, 0, &later, &state) == 0, "move a timer");
	}
	while (expired < MANY - MANY / 4) {
		TRY(poll(pollers, MANY, -1) > 0, "wait for timers");
		for (unsigned i = 0; i < MANY; i++) {
			if ((pollers[i].revents & POLLIN) == 0)
				continue;
			TRY(i % 4 != 0 && read(pollers[i].fd, &expirations, sizeof(expirations)) == sizeof(expirations) &&
				    expirations >= 1u + damaged() * 1000,
			    "a timer's expirations");
			const struct itimerspec never = {0};
			TRY(timerfd_settime(pollers[i].fd, 0, &never, NULL) == 0, "stop a timer");
			pollers[i].fd = ~pollers[i].fd;
			expired++;
		}
	}
	for (unsigned i = 0; i < MANY; i++) {
		const int fd = pollers[i].fd < 0 ? ~pollers[i].fd : pollers[i].fd;
		TRY(timerfd_gettime(fd, &state) == 0 && (state.it_value.tv_sec > 0) == (i % 4 == 0) && close(fd) == 0,
		    "a timer's state");
	}
	return true;
}

/* Signals of interval timers, and of timers by POSIX. */
static bool by_signal(void)
{
	struct sigaction action = {.sa_handler = on_alarm};
	const struct itimerval soon = {.it_value = {.tv_usec = 200}, .it_interval = {.tv_usec = 150}};
	const struct itimerval never = {0};
	struct itimerval state;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	timer_t timers_of[6];
	sigset_t blocked;
	sigset_t before;

	sigaction(SIGALRM, &action, NULL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGALRM);
	sigaddset(&blocked, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	alarms = 0;
	TRY(setitimer(ITIMER_REAL, &soon, NULL) == 0, "setitimer");
	for (int i = 0; i < 4; i++)
		TRY(sigsuspend(&before) == -1 && errno == EINTR, "sigsuspend");
	TRY(getitimer(ITIMER_REAL, &state) == 0 && setitimer(ITIMER_REAL, &never, NULL) == 0 && alarms >= 4,
	    "an interval timer");
	TRY(alarm(1000) == 0 && alarm(0) > 900, "alarm");
	for (unsigned i = 0; i < COUNT(timers_of); i++) {
		const struct itimerspec when = {.it_value = {.tv_nsec = 90000 * (long)(1 + i * 5 % 6)}};
		event.sigev_value.sival_int = (int)(100 + i);
		if (timer_create(CLOCK_MONOTONIC, &event, &timers_of[i]) != 0) {
			sigprocmask(SIG_SETMASK, &before, NULL);
			return lacks("CONFIG_POSIX_TIMERS");
		}
		TRY(timer_settime(timers_of[i], 0, &when, NULL) == 0, "timer_settime");
	}
	sigdelset(&blocked, SIGALRM);
	int sum = 0;
	for (unsigned i = 0; i < COUNT(timers_of); i++) {
		siginfo_t info;
		TRY(sigwaitinfo(&blocked, &info) == SIGRTMIN && info.si_code == SI_TIMER, "a timer's signal");
		sum += info.si_value.sival_int;
	}
	TRY(sum == 615 && timer_getoverrun(timers_of[0]) >= 0, "the values of timers");
	for (unsigned i = 0; i < COUNT(timers_of); i++)
		TRY(timer_delete(timers_of[i]) == 0, "timer_delete");
	/* A signal ends a sleep, and leaves what was left of it. */
	sigprocmask(SIG_SETMASK, &before, NULL);
	/* It comes again, in case the first signal comes before the sleep. */
	const struct itimerval repeated = {.it_value = {.tv_usec = 300}, .it_interval = {.tv_usec = 900}};
	struct timespec rest = {0};
	TRY(setitimer(ITIMER_REAL, &repeated, NULL) == 0 &&
		    nanosleep(&(struct timespec){.tv_sec = 500}, &rest) == -1 && errno == EINTR &&
		    rest.tv_sec >= 400 && setitimer(ITIMER_REAL, &never, NULL) == 0,
	    "a sleep that a signal ended");
	signal(SIGALRM, SIG_DFL);
	return true;
}

bool timers(unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++)
		if (!clocks() || !sleeps(round) || !descriptors() || !by_signal())
			return false;
	return true;
}
