/* Messages, semaphores and memory by System V and POSIX. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "general.h"

#define LETTERS 24
#define AREA (23 * PAGE)

struct letter {
	long type;
	unsigned char text[1500];
};

/* Letters of several types, taken by type, and answered by another process. */
static bool letters(void)
{
	struct letter letter;
	struct msqid_ds state;
	const int queue = msgget(IPC_PRIVATE, 0600 | IPC_CREAT);

	if (queue < 0)
		return lacks("CONFIG_SYSVIPC");
	for (long i = 0; i < 8; i++) {
		letter.type = 1 + i % 3;
		pattern(letter.text, 100 + 90 * (size_t)i, (unsigned)i);
		TRY(msgsnd(queue, &letter, 100 + 90 * (size_t)i, 0) == 0, "msgsnd");
	}
	TRY(msgctl(queue, IPC_STAT, &state) == 0 && state.msg_qnum == 8, "the state of a queue");
	TRY(msgrcv(queue, &letter, sizeof(letter.text), 3, 0) == 280 && msgrcv(queue, &letter, sizeof(letter.text), -2, 0) == 100,
	    "letters by type");
	while (msgrcv(queue, &letter, sizeof(letter.text), 0, IPC_NOWAIT) > 0)
		;
	TRY(errno == ENOMSG, "an empty queue");
	const pid_t child = fork_child();
	if (child == 0) {
		for (unsigned i = 0; i < LETTERS; i++) {
			const ssize_t got = msgrcv(queue, &letter, sizeof(letter.text), 7, 0);
			letter.type = 8;
			if (got < 0 || msgsnd(queue, &letter, (size_t)got, 0) != 0)
				leave(false);
		}
		leave(true);
	}
	for (unsigned i = 0; i < LETTERS; i++) {
		const size_t size = 10 + i * 61 % 1400;
		static unsigned char sent[1500];
		letter.type = 7;
		pattern(sent, size, i);
		memcpy(letter.text, sent, size);
		TRY(msgsnd(queue, &letter, size, 0) == 0 && msgrcv(queue, &letter, sizeof(letter.text), 8, 0) == (ssize_t)size &&
			    same(letter.text, sent, size),
		    "a letter's way");
	}
	TRY(child > 0 && reap(child), "a process that writes letters");
	return msgctl(queue, IPC_RMID, NULL) == 0;
}

/* A set of semaphores, several changed at once, with what is undone when a process ends. */
static bool semaphores(void)
{
	const int set = semget(IPC_PRIVATE, 5, 0600 | IPC_CREAT);
	struct sembuf both[2] = {{.sem_num = 0, .sem_op = -2}, {.sem_num = 3, .sem_op = 1}};

	if (set < 0)
		return lacks("CONFIG_SYSVIPC");
	for (int i = 0; i < 5; i++)
		TRY(semctl(set, i, SETVAL, 0) == 0, "SETVAL");
	const pid_t child = fork_child();
	if (child == 0) {
		struct sembuf give = {.sem_num = 0, .sem_op = 1};
		struct sembuf undone = {.sem_num = 4, .sem_op = 6, .sem_flg = SEM_UNDO};
		bool sound = semop(set, &undone, 1) == 0;
		for (int i = 0; sound && i < 40; i++)
			sound = semop(set, &give, 1) == 0;
		leave(sound);
	}
	for (int i = 0; i < 20; i++)
		TRY(semop(set, both, 2) == 0, "semop");
	TRY(child > 0 && reap(child) && semctl(set, 3, GETVAL) == 20 + damaged() && semctl(set, 4, GETVAL) == 0,
	    "the values of semaphores");
	both[0].sem_flg = IPC_NOWAIT;
	TRY(semop(set, both, 2) == -1 && errno == EAGAIN, "a semaphore at zero");
	return semctl(set, 0, IPC_RMID) == 0;
}

static bool areas(void)
{
	struct shmid_ds state;
	const int area = shmget(IPC_PRIVATE, AREA, 0600 | IPC_CREAT);

	if (area < 0)
		return lacks("CONFIG_SYSVIPC");
	unsigned char *memory = shmat(area, NULL, 0);
	TRY(memory != (void *)-1, "shmat");
	memory[0] = 1;
	const pid_t child = fork_child();
	if (child == 0) {
		unsigned char *again = shmat(area, NULL, 0);
		for (size_t at = 0; at < AREA; at += PAGE)
			again[at]++;
		leave(shmdt(again) == 0);
	}
	TRY(child > 0 && reap(child) && memory[0] == 2 && memory[22 * PAGE] == 1, "a shared area");
	TRY(shmctl(area, IPC_STAT, &state) == 0 && state.shm_nattch == 1 && shmdt(memory) == 0, "the state of an area");
	return shmctl(area, IPC_RMID, NULL) == 0;
}

/* POSIX: messages by priority, blocking and with a limit. */
static bool messages(void)
{
	char name[32];
	struct mq_attr shape = {.mq_maxmsg = 8, .mq_msgsize = 800};
	unsigned char text[800];
	unsigned char read_back[800];
	unsigned priority;
	const struct timespec past = {0};

	snprintf(name, sizeof(name), "/general-%d", (int)getpid());
	const mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &shape);
	if (queue < 0)
		return lacks("CONFIG_POSIX_MQUEUE");
	for (unsigned i = 0; i < 8; i++) {
		pattern(text, 50 + 90 * i, i);
		TRY(mq_send(queue, (const char *)text, 50 + 90 * i, i * 3 % 8) == 0, "mq_send");
	}
	TRY(mq_timedsend(queue, "x", 1, 0, &past) == -1 && errno == ETIMEDOUT, "a full queue");
	for (unsigned i = 8; i-- > 0;) {
		const unsigned sent = i * 3 % 8;
		const ssize_t got = mq_receive(queue, (char *)read_back, sizeof(read_back), &priority);
		pattern(text, sizeof(text), sent);
		TRY(got == (ssize_t)(50 + 90 * sent) && priority == i && same(text, read_back, (size_t)got), "a message");
	}
	const pid_t child = fork_child();
	if (child == 0) {
		for (unsigned i = 0; i < LETTERS; i++)
			if (mq_send(queue, (const char *)text, 200 + i, 1) != 0)
				leave(false);
		leave(true);
	}
	for (unsigned i = 0; i < LETTERS; i++)
		TRY(mq_receive(queue, (char *)read_back, sizeof(read_back), NULL) == (ssize_t)(200 + i), "mq_receive");
	TRY(child > 0 && reap(child) && mq_getattr(queue, &shape) == 0 && shape.mq_curmsgs == 0, "a queue's state");
	return mq_close(queue) == 0 && mq_unlink(name) == 0;
}

/* Memory by name, which is a file of tmpfs. */
static bool named_memory(void)
{
	const int fd = open("area", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	TRY(fd >= 0 && ftruncate(fd, (off_t)AREA) == 0, "open memory");
	unsigned char *memory = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TRY(memory != MAP_FAILED, "mmap");
	const pid_t child = fork_child();
	if (child == 0) {
		memset(memory + 100, 77, 3 * PAGE);
		leave(true);
	}
	TRY(child > 0 && reap(child) && memory[99] == 0 && memory[3 * PAGE + 99] == 77, "named memory");
	return munmap(memory, AREA) == 0 && close(fd) == 0 && unlink("area") == 0;
}

bool queues(unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++)
		if (!letters() || !semaphores() || !areas() || !messages() || !named_memory())
			return false;
	return true;
}
