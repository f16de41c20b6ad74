#define _GNU_SOURCE
#include "binder_link.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/android/binder.h>
#include <linux/android/binderfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case.h"

#define MAPPED (1u << 20)
#define MOUNT_POINT "/dev/binderfs"

/* Commands for the driver, one after another. */
struct commands {
	unsigned char bytes[256];
	size_t size;
};

/* The driver's commands are packed: a word, directly followed by its argument. */
static void add(struct commands *commands, uint32_t command, const void *argument, size_t size)
{
	memcpy(commands->bytes + commands->size, &command, sizeof(command));
	memcpy(commands->bytes + commands->size + sizeof(command), argument, size);
	commands->size += sizeof(command) + size;
}

static void add_free(struct commands *commands, binder_uintptr_t buffer)
{
	add(commands, BC_FREE_BUFFER, &buffer, sizeof(buffer));
}

/* A payload of bytes without objects, so without offsets. */
static void add_transaction(struct commands *commands, uint32_t command, uint32_t code,
			    const void *data, size_t size)
{
	struct binder_transaction_data transaction = {
		.code = code,
		.data_size = size,
		.data.ptr.buffer = (binder_uintptr_t)(uintptr_t)data,
	};

	add(commands, command, &transaction, sizeof(transaction));
}

int binder_open(void)
{
	static const char *const paths[] = {MOUNT_POINT "/binder", "/dev/binder"};

	if (access(MOUNT_POINT "/binder-control", F_OK) != 0) {
		mkdir(MOUNT_POINT, 0755);
		if (mount("binder", MOUNT_POINT, "binder", 0, NULL) != 0)
			rmdir(MOUNT_POINT);
	}
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const int device = open(paths[i], O_RDWR | O_CLOEXEC);
		if (device >= 0)
			return device;
	}
	/* A kernel without configured device names makes them on request. */
	struct binderfs_device wanted = {.name = "binder"};
	const int control = open(MOUNT_POINT "/binder-control", O_RDONLY | O_CLOEXEC);
	if (control < 0)
		unsupported("CONFIG_ANDROID_BINDERFS");
	const int made = ioctl(control, BINDER_CTL_ADD, &wanted);
	close(control);
	const int device = made == 0 ? open(paths[0], O_RDWR | O_CLOEXEC) : -1;
	if (device < 0)
		unsupported("CONFIG_ANDROID_BINDERFS");
	return device;
}

bool binder_map(int device)
{
	struct binder_version version;

	if (ioctl(device, BINDER_VERSION, &version) != 0 ||
	    version.protocol_version != BINDER_CURRENT_PROTOCOL_VERSION)
		return fault("binder's protocol version");
	return mmap(NULL, MAPPED, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, device, 0) != MAP_FAILED ||
	       fault("map binder's buffer");
}

bool binder_become_manager(int device)
{
	/* A worker of the kernel has to dispose of the previous manager first. */
	for (int tries = 0; tries < 1000; tries++) {
		if (ioctl(device, BINDER_SET_CONTEXT_MGR, 0) == 0)
			return true;
		if (errno != EBUSY)
			break;
		usleep(1000);
	}
	return fault("become context manager");
}

/* One call into the driver: commands in, events out. */
static bool exchange(int device, struct commands *commands, void *into, size_t capacity, size_t *got)
{
	struct binder_write_read trip = {
		.write_size = commands->size,
		.write_buffer = (binder_uintptr_t)(uintptr_t)commands->bytes,
		.read_size = capacity,
		.read_buffer = (binder_uintptr_t)(uintptr_t)into,
	};

	while (ioctl(device, BINDER_WRITE_READ, &trip) != 0)
		if (errno != EINTR)
			return fault("ioctl BINDER_WRITE_READ");
	commands->size = 0;
	*got = trip.read_consumed;
	return true;
}

/*
 * Call the driver until the awaited transaction arrives; other events are only checked. The
 * commands are for the first call.
 */
static bool await(int device, struct commands *commands, uint32_t awaited,
		  struct binder_transaction_data *transaction)
{
	unsigned char events[256];
	size_t got = 0;

	for (;;) {
		bool came = false;
		if (!exchange(device, commands, events, sizeof(events), &got))
			return false;
		for (size_t at = 0; at + sizeof(uint32_t) <= got;) {
			uint32_t what;
			memcpy(&what, events + at, sizeof(what));
			at += sizeof(what);
			if (what == awaited) {
				memcpy(transaction, events + at, sizeof(*transaction));
				came = true;
			} else if (what != BR_NOOP && what != BR_TRANSACTION_COMPLETE &&
				   what != BR_SPAWN_LOOPER) {
				errno = 0;
				return fault("binder gave an error");
			}
			at += _IOC_SIZE(what);
		}
		if (came)
			return true;
	}
}

bool binder_serve(int device, binder_service service)
{
	struct commands commands = {.size = 0};
	struct binder_transaction_data request;
	/* Services read and write numbers in it. */
	_Alignas(uint64_t) unsigned char reply[BINDER_LINK_MAX];
	size_t reply_size;

	add(&commands, BC_ENTER_LOOPER, "", 0);
	for (;;) {
		if (!await(device, &commands, BR_TRANSACTION, &request))
			return false;
		const void *data = (const void *)(uintptr_t)request.data.ptr.buffer;
		if (request.data_size > sizeof(reply) ||
		    !service(request.code, data, request.data_size, reply, &reply_size))
			return fault("a request to the binder service");
		add_free(&commands, request.data.ptr.buffer);
		add_transaction(&commands, BC_REPLY, 0, reply, reply_size);
	}
}

bool binder_call(int device, uint32_t code, const void *request, size_t size, void *reply,
		 size_t reply_size)
{
	static __thread struct commands commands;
	struct binder_transaction_data answer;

	/* The buffer of the previous call is returned on the way in, as libbinder does. */
	add_transaction(&commands, BC_TRANSACTION, code, request, size);
	if (!await(device, &commands, BR_REPLY, &answer))
		return false;
	const bool fits = answer.data_size == reply_size;
	if (fits && reply_size > 0)
		memcpy(reply, (const void *)(uintptr_t)answer.data.ptr.buffer, reply_size);
	add_free(&commands, answer.data.ptr.buffer);
	return fits || fault("size of a binder reply");
}
