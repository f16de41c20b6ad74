/*
 * The guest's /init: prepares the machine and serves the host's requests.
 *
 * Requests come over the virtio-serial port, or from a file of the initramfs if it has one. With
 * the file, nothing in the guest waits for the host, and under -icount a run repeats instruction
 * for instruction. Responses always go to the port. abi/agent_protocol.h defines the frames. The
 * agent runs only on little-endian machines, so it copies numbers as they are.
 *
 * Run as an ordinary program (`agent REQUESTS RESPONSES`), it serves a file of requests and leaves
 * the machine alone; the tests use that.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "marks.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire format is the memory format");

#define CHUNK (1u << 20)

/* In the archive of a kernel with modules. */
#define MODULE_LOADER "/mepof/modules/load"
#define PORT_MODULES "/mepof/modules/port"
#define LOADING_LIMIT_MS 60000

static bool is_init;
static int requests = -1;
static int responses = -1;

static _Noreturn void power_off(void)
{
	sync();
	/* QEMU runs with -no-reboot; its microvm machine has no other way to power off. */
	if (is_init)
		reboot(RB_AUTOBOOT);
	exit(0);
}

_Noreturn void fail(const char *what)
{
	fprintf(stderr, "mepof-agent: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
	if (is_init)
		power_off();
	exit(1);
}

char *bytes_grow(struct bytes *bytes, size_t more)
{
	if (bytes->size + more > bytes->capacity) {
		bytes->capacity = (bytes->size + more) * 3 / 2;
		bytes->data = realloc(bytes->data, bytes->capacity);
		if (bytes->data == NULL)
			fail("not enough memory for a message");
	}
	return bytes->data + bytes->size;
}

static void append(struct bytes *bytes, const void *data, size_t size)
{
	memcpy(bytes_grow(bytes, size), data, size);
	bytes->size += size;
}

static void append_u32(struct bytes *bytes, uint32_t number)
{
	append(bytes, &number, sizeof(number));
}

static void pause_ms(long milliseconds)
{
	const struct timespec time = {.tv_nsec = milliseconds * 1000000};

	nanosleep(&time, NULL);
}

static void send_all(const void *data, size_t size)
{
	const char *at = data;

	while (size > 0) {
		const ssize_t sent = write(responses, at, size);
		if (sent < 0 && errno != EINTR && errno != EAGAIN)
			fail("cannot write to the host's port");
		if (sent > 0) {
			at += sent;
			size -= (size_t)sent;
		}
	}
}

static void respond(uint32_t type, const struct bytes *payload)
{
	const struct header header = {MAGIC, type, payload->size};

	send_all(&header, sizeof(header));
	send_all(payload->data, payload->size);
}

/* True when everything arrived; false at the end of a request file, exactly between two frames. */
static bool receive(void *data, size_t size, bool may_end)
{
	char *at = data;
	const size_t whole = size;

	while (size > 0) {
		const ssize_t got = read(requests, at, size);
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			fail("cannot read requests");
		if (got == 0) {
			if (requests != responses) {
				errno = 0;
				if (may_end && size == whole)
					return false;
				fail("the request file ends within a request");
			}
			/* The port reads as empty while its other end is closed. */
			pause_ms(10);
		}
		if (got > 0) {
			at += got;
			size -= (size_t)got;
		}
	}
	return true;
}

static void respond_error(uint32_t type, const char *text)
{
	struct bytes payload = {0};

	append_u32(&payload, type);
	append(&payload, text, strlen(text));
	respond(ERROR, &payload);
	free(payload.data);
}

/* Length of the NUL-terminated string at `at`, or -1 if it does not end before `end`. */
static ptrdiff_t string_length(const char *at, const char *end)
{
	const char *nul = memchr(at, '\0', (size_t)(end - at));

	return nul ? nul - at : -1;
}

static void serve_exec(char *at, char *end)
{
	uint32_t numbers[2]; /* limit in ms, count of arguments */
	struct bytes payload = {0};

	if (end - at < (ptrdiff_t)sizeof(numbers))
		return respond_error(EXEC, "short request");
	memcpy(numbers, at, sizeof(numbers));
	at += sizeof(numbers);
	/* Every argument takes at least a byte, which bounds the allocation. */
	if (numbers[1] == 0 || numbers[1] > (size_t)(end - at))
		return respond_error(EXEC, "wrong number of arguments");
	char **argv = calloc(numbers[1] + 1, sizeof(*argv));
	if (argv == NULL)
		fail("not enough memory for arguments");
	for (uint32_t i = 0; i < numbers[1]; i++) {
		const ptrdiff_t length = string_length(at, end);
		if (length < 0) {
			free(argv);
			return respond_error(EXEC, "wrong number of arguments");
		}
		argv[i] = at;
		at += length + 1;
	}
	/* The numbers precede the output, and are known after it. */
	payload.size = 16;
	bytes_grow(&payload, 0);
	const struct outcome outcome = run_program(argv, numbers[0], &payload);
	const uint32_t flags = outcome.truncated;
	memcpy(payload.data, &outcome.status, 4);
	memcpy(payload.data + 4, &flags, 4);
	memcpy(payload.data + 8, &outcome.elapsed_ns, 8);
	respond(RESPONSE | EXEC, &payload);
	free(payload.data);
	free(argv);
}

static void make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
}

/* Returns errno. The mode applies to a file that is created; an existing file keeps its own. */
static uint32_t put_file(char *path, uint32_t mode, const char *data, size_t size)
{
	make_parents(path);
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (fd < 0)
		return (uint32_t)errno;
	while (size > 0) {
		const ssize_t put = write(fd, data, size);
		if (put < 0) {
			const uint32_t error = (uint32_t)errno;
			close(fd);
			return error;
		}
		data += put;
		size -= (size_t)put;
	}
	return close(fd) == 0 ? 0 : (uint32_t)errno;
}

static void serve_put(char *at, char *end)
{
	uint32_t mode;
	struct bytes payload = {0};

	if (end - at < (ptrdiff_t)sizeof(mode))
		return respond_error(PUT, "short request");
	memcpy(&mode, at, sizeof(mode));
	at += sizeof(mode);
	const ptrdiff_t length = string_length(at, end);
	if (length <= 0)
		return respond_error(PUT, "no path");
	char *data = at + length + 1;
	append_u32(&payload, put_file(at, mode & 07777, data, (size_t)(end - data)));
	respond(RESPONSE | PUT, &payload);
	free(payload.data);
}

/* Reads to the end of file, whatever its size: files of debugfs and procfs report none. */
static uint32_t get_file(const char *path, struct bytes *into)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint32_t error = 0;

	if (fd < 0)
		return (uint32_t)errno;
	for (;;) {
		const ssize_t got = read(fd, bytes_grow(into, CHUNK), CHUNK);
		if (got < 0)
			error = (uint32_t)errno;
		if (got <= 0)
			break;
		into->size += (size_t)got;
	}
	close(fd);
	return error;
}

static void serve_get(const char *at, const char *end)
{
	struct bytes payload = {0};

	if (string_length(at, end) <= 0)
		return respond_error(GET, "no path");
	append_u32(&payload, 0);
	const uint32_t error = get_file(at, &payload);
	memcpy(payload.data, &error, sizeof(error));
	if (error != 0)
		payload.size = sizeof(error);
	respond(RESPONSE | GET, &payload);
	free(payload.data);
}

/* Replies are outside of the recording, because they are not part of the recorded work. */
static void serve_record(const char *at, const char *end)
{
	const struct bytes nothing = {0};
	uint32_t on;

	if (end - at != (ptrdiff_t)sizeof(on))
		return respond_error(RECORD, "wrong size of a request to record");
	memcpy(&on, at, sizeof(on));
	if (!on)
		mepof_mark_session_stop();
	respond(RESPONSE | RECORD, &nothing);
	if (on)
		mepof_mark_session_start();
}

static _Noreturn void serve(void)
{
	struct utsname name;
	struct bytes hello = {0};
	struct header header;
	const struct bytes nothing = {0};

	uname(&name);
	append(&hello, name.release, strlen(name.release));
	respond(HELLO, &hello);
	free(hello.data);
	while (receive(&header, sizeof(header), true)) {
		errno = 0;
		if (header.magic != MAGIC)
			fail("what came is not a request (wrong magic number)");
		if (header.size > REQUEST_LIMIT)
			fail("a request is larger than 256 MiB");
		/* One byte more, so that an empty payload is a valid pointer too. */
		char *payload = malloc(header.size + 1);
		if (payload == NULL)
			fail("not enough memory for a request");
		receive(payload, header.size, false);
		char *end = payload + header.size;
		switch (header.type) {
		case EXEC:
			serve_exec(payload, end);
			break;
		case PUT:
			serve_put(payload, end);
			break;
		case GET:
			serve_get(payload, end);
			break;
		case RECORD:
			serve_record(payload, end);
			break;
		case POWEROFF:
			respond(RESPONSE | POWEROFF, &nothing);
			power_off();
		case SHELL: {
			struct bytes status = {0};
			append_u32(&status, run_shell());
			respond(RESPONSE | SHELL, &status);
			free(status.data);
			break;
		}
		default:
			respond_error(header.type, "unknown request");
		}
		free(payload);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	power_off();
}

/* The kernel may not have this file system: whatever needs it reports that. */
static void mount_at(const char *type, const char *where, bool needed)
{
	mkdir(where, 0755);
	if (mount(type, where, type, 0, NULL) != 0 && errno != EBUSY && needed) {
		char text[64];
		snprintf(text, sizeof(text), "cannot mount %s on %s", type, where);
		fail(text);
	}
}

static void bring_up_loopback(void)
{
	struct ifreq interface = {.ifr_name = "lo"};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (ioctl(fd, SIOCGIFFLAGS, &interface) == 0) {
		interface.ifr_flags |= IFF_UP | IFF_RUNNING;
		ioctl(fd, SIOCSIFFLAGS, &interface);
	}
	close(fd);
}

/* True if the virtio port of that directory in sysfs has our name. */
static bool port_is_ours(const char *port)
{
	char path[300];
	char name[64] = "";

	snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", port);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return false;
	if (fgets(name, sizeof(name), file) == NULL)
		name[0] = '\0';
	fclose(file);
	name[strcspn(name, "\n")] = '\0';
	return strcmp(name, PORT_NAME) == 0;
}

static int open_port(void)
{
	char path[300];
	int fd = -1;
	DIR *ports = opendir("/sys/class/virtio-ports");

	if (ports == NULL)
		return -1;
	for (struct dirent *entry; fd < 0 && (entry = readdir(ports)) != NULL;) {
		if (entry->d_name[0] == '.' || !port_is_ours(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	closedir(ports);
	return fd;
}

/* Load the modules without which the port does not appear, if the kernel has any. */
static void load_drivers(void)
{
	char *argv[] = {MODULE_LOADER, PORT_MODULES, NULL};
	struct bytes said = {0};

	if (access(PORT_MODULES, F_OK) != 0)
		return;
	if (run_program(argv, LOADING_LIMIT_MS, &said).status != 0) {
		fwrite(said.data, 1, said.size, stderr);
		errno = 0;
		fail("a module of the port did not load");
	}
	free(said.data);
}

static void prepare_machine(void)
{
	umask(0);
	mount_at("devtmpfs", "/dev", true);
	const int console = open("/dev/console", O_RDWR);
	for (int fd = 0; console >= 0 && fd < 3; fd++)
		dup2(console, fd);
	if (console > 2)
		close(console);
	mount_at("proc", "/proc", true);
	mount_at("sysfs", "/sys", true);
	mount_at("debugfs", "/sys/kernel/debug", false);
	mount_at("tmpfs", "/tmp", false);
	bring_up_loopback();
	setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin", 1);
	setenv("HOME", "/tmp", 1);
	setenv("TERM", "vt100", 1);
	if (chdir("/tmp") != 0)
		fail("cannot enter /tmp");
	load_drivers();

	/* The host names the port after the device appears: allow it a moment. */
	for (int tries = 0; responses < 0 && tries < 500; tries++) {
		if (tries > 0)
			pause_ms(10);
		responses = open_port();
	}
	errno = 0;
	if (responses < 0)
		fail("no virtio-serial port named " PORT_NAME " (CONFIG_VIRTIO_CONSOLE, -device virtserialport)");
	requests = open(BATCH_FILE, O_RDONLY | O_CLOEXEC);
	if (requests < 0)
		requests = responses;
}

int main(int argc, char **argv)
{
	is_init = getpid() == 1;
	signal(SIGPIPE, SIG_IGN);
	if (is_init) {
		prepare_machine();
	} else if (argc == 3) {
		requests = open(argv[1], O_RDONLY | O_CLOEXEC);
		responses = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (requests < 0 || responses < 0)
			fail("cannot open the files");
	} else {
		fputs("usage: agent REQUESTS RESPONSES (or run it as a guest's /init)\n", stderr);
		return 2;
	}
	serve();
}
