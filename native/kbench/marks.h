/*
 * Start and stop marks: instructions that do nothing on real hardware and that the
 * emulator's plugins recognise by their encoding. kbench marks what it measures, the agent
 * what is recorded, with marks of its own: a recording may hold measurements. This is the
 * only file of the guest programs that knows the architecture.
 */
#ifndef MEPOF_MARKS_H
#define MEPOF_MARKS_H

#if defined(__x86_64__)
/* nopl disp32(%rax,%rax,1): the long form with a displacement that no compiler emits. */
#define MEPOF_MARK(number) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00\n\t.long %c0" : : "i"(number) : "memory")
#define mepof_mark_start() MEPOF_MARK(0x4d500001)
#define mepof_mark_stop() MEPOF_MARK(0x4d500002)
#define mepof_mark_session_start() MEPOF_MARK(0x4d500003)
#define mepof_mark_session_stop() MEPOF_MARK(0x4d500004)
#elif defined(__aarch64__)
/* A move to the zero register; the number names the mark. */
#define MEPOF_MARK(number) __asm__ volatile("movz xzr, #%c0" : : "i"(number) : "memory")
#define mepof_mark_start() MEPOF_MARK(0x4d51)
#define mepof_mark_stop() MEPOF_MARK(0x4d52)
#define mepof_mark_session_start() MEPOF_MARK(0x4d53)
#define mepof_mark_session_stop() MEPOF_MARK(0x4d54)
#else
#error "marks.h: add the mark encodings of this architecture"
#endif

#endif
