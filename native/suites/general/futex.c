/* Futexes, beneath the locks of threads and processes. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "general.h"

#define CREW 6
#define TURNS 40

static long futex(const void *word, int operation, uint32_t value, const struct timespec *limit,
		  const void *other, uint32_t bits)
{
	return syscall(SYS_futex, word, operation, value, limit, other, bits);
}

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t shelf = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t meeting;
static sem_t seats;
static unsigned whose;
static unsigned total;
static unsigned book;

/* Takes turns, then competes for a lock and for few seats. */
static void *member(void *argument)
{
	const unsigned me = (unsigned)(uintptr_t)argument;
	bool sound = true;

	for (unsigned i = 0; i < TURNS / 4; i++) {
		pthread_mutex_lock(&guard);
		while (whose % CREW != me)
			pthread_cond_wait(&turn, &guard);
		whose++;
		pthread_cond_broadcast(&turn);
		pthread_mutex_unlock(&guard);
	}
	pthread_barrier_wait(&meeting);
	for (unsigned i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&guard);
		total++;
		/* Given up while the lock is held, so that the others have to sleep. */
		if (i % 4 == me % 4)
			sched_yield();
		pthread_mutex_unlock(&guard);
		sem_wait(&seats);
		if (i % 8 == me)
			sched_yield();
		sem_post(&seats);
		if (i % 6 == me) {
			pthread_rwlock_wrlock(&shelf);
			book++;
			sched_yield();
			pthread_rwlock_unlock(&shelf);
		} else {
			pthread_rwlock_rdlock(&shelf);
			sound = sound && book <= CREW * TURNS;
			pthread_rwlock_unlock(&shelf);
		}
	}
	return sound ? argument : NULL;
}

static bool contended(void)
{
	pthread_t crew[CREW];

	whose = 0;
	total = 0;
	book = 0;
	TRY(pthread_barrier_init(&meeting, NULL, CREW) == 0 && sem_init(&seats, 0, 2) == 0, "a barrier");
	for (uintptr_t i = 0; i < CREW; i++)
		TRY(pthread_create(&crew[i], NULL, member, (void *)i) == 0, "create a thread");
	for (uintptr_t i = 0; i < CREW; i++) {
		void *result;
		TRY(pthread_join(crew[i], &result) == 0 && result == (void *)i, "join");
	}
	TRY(total == CREW * TURNS + (unsigned)damaged() && whose == CREW * (TURNS / 4), "what locks kept apart");
	TRY(pthread_barrier_destroy(&meeting) == 0 && sem_destroy(&seats) == 0, "destroy");
	return true;
}

/* Sleepers on one word: some are woken, the rest moved to another word and woken there. */
struct words {
	_Atomic uint32_t first;
	_Atomic uint32_t second;
	_Atomic uint32_t asleep;
	_Atomic uint32_t woken;
};

static struct words *words;

static void *sleeper(void *argument)
{
	atomic_fetch_add(&words->asleep, 1);
	while (atomic_load(&words->first) == 0)
		futex(&words->first, FUTEX_WAIT_BITSET, 0, NULL, NULL, (uint32_t)(uintptr_t)argument);
	atomic_fetch_add(&words->woken, 1);
	return argument;
}

static bool moved(void)
{
	pthread_t sleepers[CREW];

	memset(words, 0, sizeof(*words));
	for (uintptr_t i = 0; i < CREW; i++)
		TRY(pthread_create(&sleepers[i], NULL, sleeper, (void *)((uintptr_t)1 << i)) == 0, "create");
	while (atomic_load(&words->asleep) < CREW)
		sched_yield();
	usleep(200);
	TRY(futex(&words->first, FUTEX_WAKE_BITSET, 1, NULL, NULL, 1u << 2) <= 1, "wake one by a bit");
	/* A wrong expectation is told at once. */
	TRY(futex(&words->first, FUTEX_CMP_REQUEUE, 1, (void *)2, &words->second, 7) == -1 && errno == EAGAIN,
	    "an expectation");
	atomic_store(&words->first, 1);
	long reached = futex(&words->first, FUTEX_CMP_REQUEUE, 2, (void *)(uintptr_t)INT_MAX, &words->second, 1);
	TRY(reached >= 0, "requeue");
	while (atomic_load(&words->woken) < CREW) {
		TRY(futex(&words->second, FUTEX_WAKE, INT_MAX, NULL, NULL, 0) >= 0 &&
			    futex(&words->first, FUTEX_WAKE, INT_MAX, NULL, NULL, 0) >= 0,
		    "wake");
		sched_yield();
	}
	for (uintptr_t i = 0; i < CREW; i++)
		TRY(pthread_join(sleepers[i], NULL) == 0, "join");
	/* Sleeps that end by time, on a relative and an absolute clock. */
	const struct timespec moment = {.tv_nsec = 60000};
	struct timespec past;
	clock_gettime(CLOCK_MONOTONIC, &past);
	for (int i = 0; i < 4; i++)
		TRY(futex(&words->second, FUTEX_WAIT_PRIVATE, 0, &moment, NULL, 0) == -1 && errno == ETIMEDOUT &&
			    futex(&words->second, FUTEX_WAIT_BITSET_PRIVATE, 0, &past, NULL, 1) == -1 &&
			    errno == ETIMEDOUT,
		    "a sleep that ends");
	return true;
}

/* A lock in shared memory whose owner dies: the next one is told. */
static bool robust(void)
{
	pthread_mutexattr_t attributes;
	pthread_mutex_t *lock = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	TRY(lock != MAP_FAILED && pthread_mutexattr_init(&attributes) == 0, "mmap");
	TRY(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
		    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
		    pthread_mutex_init(lock, &attributes) == 0,
	    "a robust lock");
	const pid_t child = fork_child();
	if (child == 0)
		leave(pthread_mutex_lock(lock) == 0);
	TRY(child > 0 && reap(child), "a lock's owner");
	TRY(pthread_mutex_lock(lock) == EOWNERDEAD && pthread_mutex_consistent(lock) == 0 &&
		    pthread_mutex_unlock(lock) == 0,
	    "a lock whose owner died");
	/* Processes that have to wait for each other. */
	unsigned *count = (unsigned *)(lock + 1);
	const pid_t other = fork_child();
	for (int i = 0; i < 30; i++) {
		const bool sound = pthread_mutex_lock(lock) == 0;
		++*count;
		sched_yield();
		if (!sound || pthread_mutex_unlock(lock) != 0)
			return fault("a lock of processes");
	}
	if (other == 0)
		leave(true);
	TRY(other > 0 && reap(other) && *count == 60, "what two processes counted");
	return munmap(lock, PAGE) == 0;
}

/* Locks that lend their owner the priority of those who wait. */
static _Atomic uint32_t lent;

static void *borrower(void *argument)
{
	(void)argument;
	if (futex(&lent, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) != 0 ||
	    futex(&lent, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) != 0)
		return NULL;
	return &lent;
}

static bool lending(void)
{
	pthread_t other;
	void *result;

	atomic_store(&lent, 0);
	if (futex(&lent, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) != 0)
		return lacks("CONFIG_FUTEX_PI");
	TRY(pthread_create(&other, NULL, borrower, NULL) == 0, "create a thread");
	usleep(100);
	TRY(futex(&lent, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0, "unlock");
	TRY(pthread_join(other, &result) == 0 && result == &lent, "a lock that lends");
	return true;
}

/* Several words at once, of which a child wakes the last. */
static bool any_of(void)
{
	struct {
		uint64_t value;
		uint64_t address;
		uint32_t flags;
		uint32_t reserved;
	} waiters[3] = {0};
	_Atomic uint32_t *const all[3] = {&words->first, &words->second, &words->asleep};
	long woken;

	memset(words, 0, sizeof(*words));
	for (size_t i = 0; i < COUNT(waiters); i++) {
		waiters[i].address = (uint64_t)(uintptr_t)all[i];
		waiters[i].flags = 2; /* FUTEX2_SIZE_U32 */
	}
	const pid_t child = fork_child();
	if (child == 0) {
		usleep(100);
		atomic_store(all[2], 1);
		leave(futex(all[2], FUTEX_WAKE, 1, NULL, NULL, 0) >= 0);
	}
	while ((woken = syscall(449 /* futex_waitv */, waiters, COUNT(waiters), 0, NULL, 0)) < 0 &&
	       errno == EINTR)
		;
	const int error = errno;
	TRY(child > 0 && reap(child), "a process that wakes");
	errno = error;
	/* EAGAIN: the child was faster. */
	return woken == 2 || errno == EAGAIN || lacks("futex_waitv");
}

bool futexes(unsigned rounds)
{
	words = shared_memory(sizeof(*words));
	for (unsigned round = 0; round < rounds; round++)
		if (!contended() || !moved() || !robust() || !lending() ||
		    !any_of())
			return false;
	return true;
}
