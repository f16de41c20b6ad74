/* nopl disp32(%rax,%rax,1): the long form with a displacement that no compiler emits. */
#ifndef MEPOF_ABI_MARK_ENCODING_H
#define MEPOF_ABI_MARK_ENCODING_H

#define MEPOF_MARK_START 0x4d500001
#define MEPOF_MARK_STOP 0x4d500002
#define MEPOF_MARK_SESSION_START 0x4d500003
#define MEPOF_MARK_SESSION_STOP 0x4d500004

#define MEPOF_MARK(number) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00\n\t.long %c0" : : "i"(number) : "memory")

#endif
