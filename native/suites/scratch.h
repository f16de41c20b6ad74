/*
 * A file system on a block device of the kernel's that lies in memory (null_blk): fresh for
 * every program, and without a host behind it, so that it repeats.
 */
#ifndef MEPOF_SUITES_SCRATCH_H
#define MEPOF_SUITES_SCRATCH_H

#include <stdbool.h>

/*
 * Make the device, lay the file system on it that the archive brings, mount it and go there.
 * Ends the program as unsupported where the kernel lacks something for it. Where the
 * environment variable SUITE_SCRATCH names a directory, that is used instead.
 */
bool scratch_mount(void);

/* Have all that was written on the device, and forget what memory has of it. The working
 * directory stays the same. */
bool scratch_sync(void);

/* Leave it, and have the device gone. */
bool scratch_unmount(void);

#endif
