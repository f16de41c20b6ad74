/* movz xzr, #number: a move to the zero register. */
#ifndef MEPOF_ABI_MARK_ENCODING_H
#define MEPOF_ABI_MARK_ENCODING_H

#define MEPOF_MARK_START 0x4d51
#define MEPOF_MARK_STOP 0x4d52
#define MEPOF_MARK_SESSION_START 0x4d53
#define MEPOF_MARK_SESSION_STOP 0x4d54

#define MEPOF_MARK(number) __asm__ volatile("movz xzr, #%c0" : : "i"(number) : "memory")

#endif
