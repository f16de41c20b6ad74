/*
 * input: a touch on its way from a driver to an application, in three stages. It is obtained from
 * the driver (uinput and evdev, against a ring in shared memory), processed (decoded and queued to
 * another thread), and dispatched to the application's process, which acknowledges it (a Unix
 * socket of packets, against the ring). An operation is one touch.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/input.h>
#include <linux/uinput.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../case.h"

#define WIDTH 1080
#define HEIGHT 2400

const char suite_name[] = "input";

struct touch {
	uint32_t number;
	int32_t x;
	int32_t y;
	uint32_t down;
};

static struct touch touch_of(uint32_t number)
{
	/*
	 * Each differs from the previous one in every value, and the first from zero: the kernel
	 * passes on only changes.
	 */
	return (struct touch){number, (int32_t)((number * 7 + 1) % WIDTH),
			      (int32_t)((number * 11 + 1) % HEIGHT), (number + 1) & 1};
}

static bool is_touch(const struct touch *touch, uint32_t number)
{
	const struct touch expected = touch_of(number + damaged());

	errno = 0;
	return (touch->x == expected.x && touch->y == expected.y && touch->down == expected.down) ||
	       fault("what became of a touch");
}

/* ring: slots in shared memory, and words to sleep on. */

#define SLOTS 16

struct ring {
	_Atomic uint32_t put;
	_Atomic uint32_t taken;
	struct touch touches[SLOTS];
};

static void sleep_while(_Atomic uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void ring_put(struct ring *ring, const struct touch *touch)
{
	const uint32_t at = atomic_load(&ring->put);

	for (uint32_t taken; at - (taken = atomic_load(&ring->taken)) == SLOTS;)
		sleep_while(&ring->taken, taken);
	ring->touches[at % SLOTS] = *touch;
	atomic_store(&ring->put, at + 1);
	wake(&ring->put);
}

static struct touch ring_take(struct ring *ring)
{
	const uint32_t at = atomic_load(&ring->taken);

	while (atomic_load(&ring->put) == at)
		sleep_while(&ring->put, at);
	const struct touch touch = ring->touches[at % SLOTS];
	atomic_store(&ring->taken, at + 1);
	wake(&ring->taken);
	return touch;
}

/* The driver's side: one device that a program creates, and its reader. */

struct driver {
	int device;
	int reader;
	int loop;
	struct ring *ring; /* instead of the device, if there is one */
};

static int event_node(int device)
{
	char name[64];
	char path[384];
	int node = -1;

	if (ioctl(device, UI_GET_SYSNAME(sizeof(name)), name) < 0)
		return -1;
	snprintf(path, sizeof(path), "/sys/devices/virtual/input/%s", name);
	DIR *directory = opendir(path);
	for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
		if (strncmp(entry->d_name, "event", 5) != 0)
			continue;
		snprintf(path, sizeof(path), "/dev/input/%s", entry->d_name);
		/* A thread of the kernel creates the node, and may not have run yet. */
		for (int tries = 0; node < 0 && tries < 1000; tries++) {
			node = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
			if (node < 0)
				usleep(1000);
		}
		break;
	}
	if (directory != NULL)
		closedir(directory);
	return node;
}

static bool open_device(struct driver *driver)
{
	struct uinput_setup setup = {.name = "mepof touch", .id = {.bustype = BUS_VIRTUAL}};
	struct uinput_abs_setup x = {.code = ABS_X, .absinfo = {.maximum = WIDTH - 1}};
	struct uinput_abs_setup y = {.code = ABS_Y, .absinfo = {.maximum = HEIGHT - 1}};
	struct epoll_event event = {.events = EPOLLIN};

	driver->device = open("/dev/uinput", O_WRONLY | O_CLOEXEC);
	if (driver->device < 0)
		unsupported("CONFIG_INPUT_UINPUT");
	if (ioctl(driver->device, UI_SET_EVBIT, EV_KEY) != 0 ||
	    ioctl(driver->device, UI_SET_KEYBIT, BTN_TOUCH) != 0 ||
	    ioctl(driver->device, UI_SET_EVBIT, EV_ABS) != 0 ||
	    ioctl(driver->device, UI_ABS_SETUP, &x) != 0 ||
	    ioctl(driver->device, UI_ABS_SETUP, &y) != 0 ||
	    ioctl(driver->device, UI_DEV_SETUP, &setup) != 0 ||
	    ioctl(driver->device, UI_DEV_CREATE) != 0)
		return fault("make an input device");
	driver->reader = event_node(driver->device);
	if (driver->reader < 0)
		unsupported("CONFIG_INPUT_EVDEV");
	driver->loop = epoll_create1(EPOLL_CLOEXEC);
	return (driver->loop >= 0 &&
		epoll_ctl(driver->loop, EPOLL_CTL_ADD, driver->reader, &event) == 0) ||
	       fault("watch an input device");
}

static bool emit(struct driver *driver, const struct touch *touch)
{
	const struct input_event events[4] = {
		{.type = EV_ABS, .code = ABS_X, .value = touch->x},
		{.type = EV_ABS, .code = ABS_Y, .value = touch->y},
		{.type = EV_KEY, .code = BTN_TOUCH, .value = (int)touch->down},
		{.type = EV_SYN, .code = SYN_REPORT},
	};

	if (driver->ring != NULL) {
		ring_put(driver->ring, touch);
		return true;
	}
	return write(driver->device, events, sizeof(events)) == sizeof(events) ||
	       fault("write to an input device");
}

/* As an input reader does: wait until there is an event, then take all of them. */
static bool obtain(struct driver *driver, struct touch *touch)
{
	struct input_event events[16];
	struct epoll_event ready;

	if (driver->ring != NULL) {
		*touch = ring_take(driver->ring);
		return true;
	}
	for (;;) {
		if (epoll_wait(driver->loop, &ready, 1, -1) != 1)
			return fault("wait for an input device");
		const ssize_t got = read(driver->reader, events, sizeof(events));
		if (got < 0)
			return fault("read an input device");
		for (size_t i = 0; i < (size_t)got / sizeof(events[0]); i++) {
			if (events[i].type == EV_ABS && events[i].code == ABS_X)
				touch->x = events[i].value;
			else if (events[i].type == EV_ABS && events[i].code == ABS_Y)
				touch->y = events[i].value;
			else if (events[i].type == EV_KEY && events[i].code == BTN_TOUCH)
				touch->down = (uint32_t)events[i].value;
			else if (events[i].type == EV_SYN && events[i].code == SYN_DROPPED)
				return fault("an input device lost events");
			else if (events[i].type == EV_SYN && events[i].code == SYN_REPORT)
				return true;
		}
	}
}

/* Two words: progress of the last stage, for the producer, and whether a stage failed. */
struct progress {
	_Atomic uint32_t done;
	_Atomic uint32_t failed;
};

static struct progress *progress;

static void advance(void)
{
	atomic_fetch_add(&progress->done, 1);
	wake(&progress->done);
}

static bool await(uint32_t number)
{
	for (uint32_t done; (done = atomic_load(&progress->done)) <= number;) {
		if (atomic_load(&progress->failed))
			return false;
		sleep_while(&progress->done, done);
	}
	return !atomic_load(&progress->failed);
}

static bool stage_failed(void)
{
	atomic_store(&progress->failed, 1);
	advance();
	return false;
}

/* process: from the reader's thread to the dispatcher's, over a queue with a lock. */

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct touch touch;
	bool full;
	unsigned long moves;
	unsigned long last_x;
};

static struct queue queue = {.lock = PTHREAD_MUTEX_INITIALIZER,
			     .changed = PTHREAD_COND_INITIALIZER};

static void enqueue(const struct touch *touch)
{
	pthread_mutex_lock(&queue.lock);
	while (queue.full)
		pthread_cond_wait(&queue.changed, &queue.lock);
	/* State of a reader for its device: whether the finger moved, and when it was used. */
	queue.moves += (unsigned long)touch->x != queue.last_x;
	queue.last_x = (unsigned long)touch->x;
	queue.touch = *touch;
	queue.full = true;
	pthread_cond_broadcast(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
}

static struct touch dequeue(void)
{
	pthread_mutex_lock(&queue.lock);
	while (!queue.full)
		pthread_cond_wait(&queue.changed, &queue.lock);
	const struct touch touch = queue.touch;
	queue.full = false;
	pthread_cond_broadcast(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
	return touch;
}

/* dispatch: to the application's process, and its acknowledgement. */

struct channel {
	int ends[2];
	struct ring *there;
	struct ring *back;
};

static bool open_channel(struct channel *channel, bool rings)
{
	*channel = (struct channel){.ends = {-1, -1}};
	if (rings) {
		channel->there = shared_memory(sizeof(*channel->there));
		channel->back = shared_memory(sizeof(*channel->back));
		return true;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, channel->ends) != 0)
		unsupported("CONFIG_UNIX");
	return true;
}

static bool pass(int from, struct ring *ring, const struct touch *touch)
{
	if (ring == NULL)
		return send(from, touch, sizeof(*touch), 0) == sizeof(*touch) || fault("send a touch");
	ring_put(ring, touch);
	return true;
}

static bool take(int at, struct ring *ring, struct touch *touch)
{
	if (ring == NULL)
		return recv(at, touch, sizeof(*touch), 0) == sizeof(*touch) || fault("receive a touch");
	*touch = ring_take(ring);
	return true;
}

static bool dispatch(struct channel *channel, const struct touch *touch)
{
	struct touch finished;

	return pass(channel->ends[0], channel->there, touch) &&
	       take(channel->ends[0], channel->back, &finished) &&
	       (finished.number == touch->number || fault("which touch is done"));
}

static pid_t start_application(struct channel *channel, unsigned long count)
{
	const pid_t child = fork_child();

	if (child != 0)
		return child;
	bool sound = true;
	struct touch touch;
	for (uint32_t i = 0; sound && i < count; i++) {
		sound = take(channel->ends[1], channel->there, &touch) && is_touch(&touch, touch.number);
		/* The dispatcher waits for an answer, even a wrong one. */
		touch.number = sound ? touch.number : ~touch.number;
		sound = pass(channel->ends[1], channel->back, &touch) && sound;
	}
	leave(sound);
}

/* The stages, alone and one after another. */

enum stages { OBTAIN, PROCESS, DISPATCH, PATH };

static struct driver driver;
static struct channel channel;
static unsigned long total;

static void *read_touches(void *with_queue)
{
	struct touch touch = {0};

	for (uint32_t i = 0; i < total; i++) {
		if (!obtain(&driver, &touch) || !is_touch(&touch, i)) {
			stage_failed();
			break;
		}
		touch.number = i;
		if (with_queue != NULL)
			enqueue(&touch);
		else
			advance();
	}
	return NULL;
}

static void *dispatch_touches(void *with_channel)
{
	for (uint32_t i = 0; i < total; i++) {
		const struct touch touch = dequeue();
		if (!is_touch(&touch, i) || (with_channel != NULL && !dispatch(&channel, &touch))) {
			stage_failed();
			break;
		}
		advance();
	}
	return NULL;
}

/* One at a time: the next touch comes when the previous one has arrived. */
static bool drive(enum stages stages, uint32_t from, uint32_t count, bool timed)
{
	for (uint32_t i = from; i < from + count; i++) {
		const struct touch touch = touch_of(i);
		const uint64_t began = now_ns();
		bool sound = true;
		if (stages == DISPATCH)
			sound = dispatch(&channel, &touch);
		else if (stages == PROCESS)
			enqueue(&touch);
		else
			sound = emit(&driver, &touch);
		if (!sound || (stages != DISPATCH && !await(i)))
			return false;
		if (timed)
			latency_note(now_ns() - began);
	}
	return true;
}

static bool measure(enum stages stages, bool rings, unsigned long operations)
{
	static char yes;
	pthread_t reader;
	pthread_t dispatcher;
	pid_t application = 0;
	const uint32_t warm = (uint32_t)operations / 10 + 2;

	/* The last touch comes after the interval, so that the stages end after it too. */
	total = warm + operations + 1;
	progress = shared_memory(sizeof(*progress));
	if (!latencies_expect(operations))
		return false;
	if (stages == OBTAIN || stages == PATH) {
		if (rings)
			driver.ring = shared_memory(sizeof(*driver.ring));
		else if (!open_device(&driver))
			return false;
	}
	if (stages == DISPATCH || stages == PATH) {
		if (!open_channel(&channel, rings))
			return false;
		application = start_application(&channel, total);
		if (application < 0)
			return false;
	}
	const bool reads = stages == OBTAIN || stages == PATH;
	const bool dispatches = stages == PROCESS || stages == PATH;
	if ((reads && pthread_create(&reader, NULL, read_touches, stages == PATH ? &yes : NULL) != 0) ||
	    (dispatches &&
	     pthread_create(&dispatcher, NULL, dispatch_touches, stages == PATH ? &yes : NULL) != 0))
		return fault("create a thread");
	if (!drive(stages, 0, warm, false))
		return false;
	measure_begin();
	const bool sound = drive(stages, warm, (uint32_t)operations, true);
	measure_end();
	/* Threads of a failed case may wait for ever, and end with the program. */
	if (!sound || !drive(stages, warm + (uint32_t)operations, 1, false))
		return false;
	if (reads)
		pthread_join(reader, NULL);
	if (dispatches)
		pthread_join(dispatcher, NULL);
	return application == 0 || reap(application);
}

#define RUN(name, stages, rings)                                              \
	static bool run_##name(const struct suite_case *is, unsigned long operations) \
	{                                                                     \
		(void)is;                                                     \
		return measure(stages, rings, operations);                    \
	}

RUN(obtain_evdev, OBTAIN, false)
RUN(obtain_ring, OBTAIN, true)
RUN(process, PROCESS, false)
RUN(dispatch_socket, DISPATCH, false)
RUN(dispatch_ring, DISPATCH, true)
RUN(path_evdev, PATH, false)
RUN(path_ring, PATH, true)

const struct suite_case suite_cases[] = {
	{"obtain-evdev", 1500, 0, 1, run_obtain_evdev},
	{"obtain-ring", 1500, 0, 1, run_obtain_ring},
	{"process", 1500, 0, 1, run_process},
	{"dispatch-socket", 1500, 0, 1, run_dispatch_socket},
	{"dispatch-ring", 1500, 0, 1, run_dispatch_ring},
	{"path-evdev", 800, 0, 1, run_path_evdev},
	{"path-ring", 800, 0, 1, run_path_ring},
};
const size_t suite_case_count = sizeof(suite_cases) / sizeof(suite_cases[0]);
