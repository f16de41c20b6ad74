/*
 * Start and stop marks: instructions that do nothing on hardware and that the emulator's plugins
 * recognise by their encoding. A benchmark marks what it measures. The agent marks what is
 * recorded, with marks of its own, because a recording may contain measurements.
 *
 * mark_encoding.h is that of the architecture: abi/ARCH is on the include path. It defines the
 * number of each mark and MEPOF_MARK(number), the instruction.
 */
#ifndef MEPOF_ABI_MARKS_H
#define MEPOF_ABI_MARKS_H

#include "mark_encoding.h"

#define mepof_mark_start() MEPOF_MARK(MEPOF_MARK_START)
#define mepof_mark_stop() MEPOF_MARK(MEPOF_MARK_STOP)
#define mepof_mark_session_start() MEPOF_MARK(MEPOF_MARK_SESSION_START)
#define mepof_mark_session_stop() MEPOF_MARK(MEPOF_MARK_SESSION_STOP)

#endif
