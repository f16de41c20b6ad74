/*
 * Start and stop marks: instructions that do nothing on real hardware and that the
 * emulator's plugin recognises by their encoding. This is the only file of the guest
 * programs that knows the architecture.
 */
#ifndef MEPOF_MARKS_H
#define MEPOF_MARKS_H

#if defined(__x86_64__)
/* nopl disp32(%rax,%rax,1): the long form with a displacement that no compiler emits. */
#define MEPOF_MARK(number) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00\n\t.long %c0" : : "i"(number) : "memory")
#define mepof_mark_start() MEPOF_MARK(0x4d500001)
#define mepof_mark_stop() MEPOF_MARK(0x4d500002)
#elif defined(__aarch64__)
/* A move to the zero register; 0x4d51 and 0x4d52 name the mark. */
#define MEPOF_MARK(number) __asm__ volatile("movz xzr, #%c0" : : "i"(number) : "memory")
#define mepof_mark_start() MEPOF_MARK(0x4d51)
#define mepof_mark_stop() MEPOF_MARK(0x4d52)
#else
#error "marks.h: add the mark encodings of this architecture"
#endif

#endif
