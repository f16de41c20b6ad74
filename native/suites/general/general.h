/*
 * general: what programs ask of a kernel everywhere, for training a profile. It has no cases and
 * measures nothing; no action repeats the loop of a suite's case (docs/general.md).
 *
 * An action does fixed work, reads back what it wrote, and leaves nothing behind. What the kernel
 * was built without is named in its result and passed over.
 */
#ifndef MEPOF_GENERAL_H
#define MEPOF_GENERAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include "../case.h"

/* arm64 has kernels with pages of 16 and 64 KiB. */
#define PAGE ((size_t)getpagesize())
#define LARGEST_PAGE 65536ul
#define KIB 1024ul
#define MIB (1024 * KIB)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Ends a function with an error unless a condition holds. */
#define TRY(condition, what)                \
	do {                                    \
		if (!(condition))                   \
			return fault(what);             \
	} while (0)

/* The actions, each with a number of rounds. */
bool processes(unsigned rounds);
bool programs(unsigned rounds);
bool scripts(unsigned rounds);
bool threads(unsigned rounds);
bool mappings(unsigned rounds);
bool faults(unsigned rounds);
bool small_files(unsigned rounds);
bool large_files(unsigned rounds);
bool transfers(unsigned rounds);
bool directories(unsigned rounds);
bool paths(unsigned rounds);
bool attributes(unsigned rounds);
bool disk_files(unsigned rounds);
bool disk_records(unsigned rounds);
bool pipes(unsigned rounds);
bool unix_sockets(unsigned rounds);
bool tcp_requests(unsigned rounds);
bool tcp_streams(unsigned rounds);
bool udp(unsigned rounds);
bool cable(unsigned rounds);
bool netlink(unsigned rounds);
bool timers(unsigned rounds);
bool futexes(unsigned rounds);
bool polling(unsigned rounds);
bool rings(unsigned rounds);
bool signals(unsigned rounds);
bool queues(unsigned rounds);
bool scheduling(unsigned rounds);
bool credentials(unsigned rounds);
bool namespaces(unsigned rounds);
bool system_files(unsigned rounds);
bool terminals(unsigned rounds);
bool binder(unsigned rounds);
bool input(unsigned rounds);

/*
 * After a call that failed: true if its error says that the kernel was built without a feature,
 * which is then named in the action's result; otherwise the call was refused wrongly, which is a
 * fault(). `needs` is one word, such as CONFIG_IPV6.
 */
bool lacks(const char *needs);

/* Name a missing feature whatever errno says; always true. */
bool without(const char *needs);

/* Whether this program was started by a guest's first process, so the machine is its own. */
bool in_guest(void);

/* Whether two buffers are alike; never if the action was asked to be damaged. */
bool same(const void *one, const void *other, size_t size);

/* A number below a limit, from a sequence that is the same in every run; seed() restarts it. */
void seed(uint32_t value);
uint32_t below(uint32_t limit);

/*
 * Run part of an action in a process of its own, for what cannot be taken back. True if the part
 * was, or if it ended as unsupported(): then `needs` is named in the action's result.
 */
bool apart(bool (*part)(unsigned rounds), unsigned rounds, const char *needs);

/* Make a file with such contents. */
bool put_file(const char *name, const void *data, size_t size, mode_t mode);

/* Read a file to its end; its size, or -1. Its contents are followed by a zero byte. */
ssize_t get_file(const char *name, void *data, size_t capacity);

/* Write a word to a file that exists, such as a setting of the kernel. */
bool put_setting(const char *name, const char *text);

#endif
