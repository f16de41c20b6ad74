/*
 * HINT #number, which does nothing: Arm Architecture Reference Manual (DDI 0406C), A5.2.11. In A32
 * alone, for T32 code cannot be told from it by its bytes.
 */
#ifndef MEPOF_ABI_MARK_ENCODING_H
#define MEPOF_ABI_MARK_ENCODING_H

#define MEPOF_MARK_START 0x51
#define MEPOF_MARK_STOP 0x52
#define MEPOF_MARK_SESSION_START 0x53
#define MEPOF_MARK_SESSION_STOP 0x54

#ifdef __thumb__
#error "marks are A32 instructions: compile with -marm"
#endif
#define MEPOF_MARK(number) __asm__ volatile(".inst 0xe320f000 + %c0" : : "i"(number) : "memory")

#endif
