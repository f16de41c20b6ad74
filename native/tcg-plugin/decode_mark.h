/* Include after the mark_encoding.h of an architecture, and decode.h. */
#ifndef MEPOF_DECODE_MARK_H
#define MEPOF_DECODE_MARK_H

/* What the instruction that carries this number is. */
static inline enum insn_kind mark_kind(uint32_t number)
{
	switch (number) {
	case MEPOF_MARK_START:
		return INSN_START_MARK;
	case MEPOF_MARK_STOP:
		return INSN_STOP_MARK;
	case MEPOF_MARK_SESSION_START:
		return INSN_SESSION_START_MARK;
	case MEPOF_MARK_SESSION_STOP:
		return INSN_SESSION_STOP_MARK;
	default:
		return INSN_PLAIN;
	}
}

#endif
