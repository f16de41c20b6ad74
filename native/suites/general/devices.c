/* Binder, and devices of input that a program makes: what phones do, where the kernel has them. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/input.h>
#include <linux/uinput.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "../binder_link.h"
#include "general.h"

#define CALLERS 3
#define CALLS 20

/* The sizes of requests; answers have the sizes in reverse order. */
static const size_t sizes[] = {12, 400, 44, 3000, 180, 7000, 28, 1600};

static bool repeat(uint32_t code, const void *request, size_t size, void *reply, size_t *reply_size)
{
	const unsigned char *in = request;
	unsigned char *out = reply;

	*reply_size = sizes[COUNT(sizes) - 1 - code % COUNT(sizes)];
	for (size_t i = 0; i < *reply_size; i++)
		out[i] = (unsigned char)(in[i % size] + code);
	return true;
}

static int device;

static void *serve(void *nothing)
{
	(void)nothing;
	leave(binder_serve(device, repeat));
}

static void *call(void *argument)
{
	const unsigned me = (unsigned)(uintptr_t)argument;
	static __thread unsigned char request[BINDER_LINK_MAX];
	static __thread unsigned char reply[BINDER_LINK_MAX];

	for (unsigned i = 0; i < CALLS; i++) {
		const uint32_t code = i * 3 + me;
		const size_t size = sizes[code % COUNT(sizes)];
		const size_t answer = sizes[COUNT(sizes) - 1 - code % COUNT(sizes)];
		pattern(request, size, code);
		if (!binder_call(device, code, request, size, reply, answer))
			return NULL;
		for (size_t at = 0; at < answer; at += 13)
			if (reply[at] != (unsigned char)(request[at % size] + code + damaged())) {
				fault("an answer by binder");
				return NULL;
			}
	}
	return argument;
}

static bool calls(unsigned rounds)
{
	_Atomic unsigned *ready = shared_memory(sizeof(*ready));
	pthread_t callers[CALLERS];

	close(binder_open());
	const pid_t server = fork_child();
	if (server == 0) {
		pthread_t thread;
		device = binder_open();
		if (!binder_map(device) || !binder_become_manager(device) ||
		    pthread_create(&thread, NULL, serve, NULL) != 0)
			leave(false);
		atomic_store(ready, 1);
		serve(NULL);
	}
	if (server < 0 || !await_child(server, ready, 1))
		return false;
	device = binder_open();
	if (!binder_map(device))
		return false;
	for (unsigned round = 0; round < rounds; round++) {
		for (uintptr_t i = 0; i < CALLERS; i++)
			TRY(pthread_create(&callers[i], NULL, call, (void *)(i + 1)) == 0, "create a thread");
		for (int i = 0; i < CALLERS; i++) {
			void *result;
			TRY(pthread_join(callers[i], &result) == 0 && result != NULL, "a caller");
		}
	}
	return end_child(server);
}

bool binder(unsigned rounds)
{
	return apart(calls, rounds, "CONFIG_ANDROID_BINDERFS");
}

/* input: a keyboard with a wheel, whose events one reader polls for and another waits for. */

static bool emit(int fd, unsigned type, unsigned code, int value)
{
	const struct input_event event = {.type = (uint16_t)type, .code = (uint16_t)code, .value = value};

	return write(fd, &event, sizeof(event)) == sizeof(event) || fault("emit an event");
}

static int make_keyboard(void)
{
	struct uinput_setup setup = {.name = "general keyboard", .id = {.bustype = BUS_USB, .vendor = 1}};
	const int fd = open("/dev/uinput", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	for (unsigned key = KEY_ESC; key < KEY_KP0; key++)
		if (ioctl(fd, UI_SET_KEYBIT, key) != 0)
			return -2;
	if (ioctl(fd, UI_SET_EVBIT, EV_KEY) != 0 || ioctl(fd, UI_SET_EVBIT, EV_REL) != 0 ||
	    ioctl(fd, UI_SET_RELBIT, REL_WHEEL) != 0 || ioctl(fd, UI_SET_RELBIT, REL_X) != 0 ||
	    ioctl(fd, UI_DEV_SETUP, &setup) != 0 || ioctl(fd, UI_DEV_CREATE) != 0)
		return -2;
	return fd;
}

/* The node of the device, which the kernel's devtmpfs makes a little later. */
static int open_node(int keyboard)
{
	char name[32];
	char path[300];
	int node = -1;

	if (ioctl(keyboard, UI_GET_SYSNAME(sizeof(name)), name) < 0)
		return -1;
	snprintf(path, sizeof(path), "/sys/devices/virtual/input/%s", name);
	for (int tries = 0; node < 0 && tries < 1000; tries++) {
		DIR *directory = opendir(path);
		for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
			char event[300];
			if (strncmp(entry->d_name, "event", 5) != 0)
				continue;
			snprintf(event, sizeof(event), "/dev/input/%.200s", entry->d_name);
			node = open(event, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		}
		if (directory != NULL)
			closedir(directory);
		if (node < 0)
			usleep(1000);
	}
	return node;
}

static bool typed(int keyboard, int node, int second, unsigned round)
{
	struct input_event events[24];
	struct pollfd poller = {.fd = node, .events = POLLIN};

	for (unsigned i = 0; i < 20; i++) {
		const unsigned key = KEY_Q + (i * 7 + round) % 25;
		if (!emit(keyboard, EV_KEY, key, 1) || !emit(keyboard, EV_SYN, SYN_REPORT, 0) ||
		    !emit(keyboard, EV_KEY, key, 0) || !emit(keyboard, EV_REL, REL_WHEEL, i % 2 ? 1 : -1) ||
		    !emit(keyboard, EV_REL, REL_X, (int)i + 1) || !emit(keyboard, EV_SYN, SYN_REPORT, 0))
			return false;
		TRY(poll(&poller, 1, 1000) == 1, "poll a keyboard");
		TRY(read(node, events, sizeof(events)) == 6 * sizeof(events[0]) && events[0].code == key &&
			    events[4].value == (int)i + 1 + damaged(),
		    "the events of a key");
		if (i % 4 == 3)
			TRY(read(second, events, sizeof(events)) == (ssize_t)sizeof(events), "events that waited");
	}
	return true;
}

bool input(unsigned rounds)
{
	unsigned char keys[KEY_MAX / 8 + 1];
	char name[64] = "";
	const int keyboard = make_keyboard();

	if (keyboard == -1)
		return lacks("CONFIG_INPUT_UINPUT");
	TRY(keyboard >= 0, "make a keyboard");
	const int node = open_node(keyboard);
	if (node < 0) {
		close(keyboard);
		return lacks("CONFIG_INPUT_EVDEV");
	}
	const int second = open_node(keyboard);
	TRY(second >= 0 && ioctl(node, EVIOCGNAME(sizeof(name)), name) > 0 && strcmp(name, "general keyboard") == 0,
	    "a keyboard's name");
	for (unsigned round = 0; round < rounds; round++) {
		if (!typed(keyboard, node, second, round))
			return false;
		TRY(ioctl(node, EVIOCGKEY(sizeof(keys)), keys) >= 0 && keys[2] == 0, "the state of keys");
		TRY(ioctl(node, EVIOCGRAB, 1) == 0 && ioctl(node, EVIOCGRAB, 0) == 0, "grab a keyboard");
	}
	TRY(close(node) == 0 && close(second) == 0 && ioctl(keyboard, UI_DEV_DESTROY) == 0, "remove a keyboard");
	return close(keyboard) == 0;
}
