/*
 * A file system on a block device of the kernel in memory (null_blk): fresh for every program, and
 * independent of the host, so that runs repeat.
 */
#ifndef MEPOF_SUITES_SCRATCH_H
#define MEPOF_SUITES_SCRATCH_H

#include <stdbool.h>

/*
 * Make the device, write the file system from the archive to it, mount it and enter it. Ends the
 * program as unsupported if the kernel does not have what this needs. If the environment variable
 * SUITE_SCRATCH names a directory, that is used instead.
 */
bool scratch_mount(void);

/*
 * Write everything to the device, and drop it from the page cache. The working directory stays the
 * same.
 */
bool scratch_sync(void);

/* Leave the file system and remove the device. */
bool scratch_unmount(void);

#endif
