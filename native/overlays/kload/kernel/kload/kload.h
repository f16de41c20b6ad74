/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _KLOAD_H
#define _KLOAD_H

#include <linux/types.h>

/*
 * A path of the kernel that is run many times.
 *
 * @batch: operations in a round. A round ends well within a tick, so that most rounds have no
 *	interrupt in them and the shortest of them is what the code costs.
 * @prepare: may be missing; its error skips the case.
 * @round: does @batch operations; an error or a wrong result is a negative number.
 * @finish: undoes @prepare; called only after it succeeded.
 * @check: may be missing; adds what the rounds left to a sum, or is a negative number if that is
 *	wrong. Called before @finish, and not timed.
 */
struct kload_case {
	const char *name;
	unsigned int batch;
	int (*prepare)(void);
	int (*round)(unsigned int batch);
	void (*finish)(void);
	int (*check)(u32 *sum);
};

#define KLOAD_DIRECTORY "/kload"
#define KLOAD_EXT4 KLOAD_DIRECTORY "/ext4"

extern const struct kload_case kload_files[];
extern const struct kload_case kload_sockets[];
extern const struct kload_case kload_tasks[];
extern const struct kload_case kload_memory[];

int kload_files_init(void);
int kload_sockets_init(void);
int kload_disk_init(void);

u32 kload_checksum(const char *data, size_t size);

#endif /* _KLOAD_H */
