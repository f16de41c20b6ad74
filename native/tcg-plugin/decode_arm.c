/*
 * A32. Encodings: Arm Architecture Reference Manual for ARMv7-A and ARMv7-R (DDI 0406C), chapter
 * A5. T32 code is not decoded: nothing but the processor's state tells it from A32. Kernels are
 * built in A32 unless their configuration has CONFIG_THUMB2_KERNEL.
 */
#include <string.h>

#include "../abi/arm/mark_encoding.h"
#include "decode.h"
#include "decode_mark.h"

enum { ALWAYS = 0xe, UNCONDITIONAL_SPACE = 0xf, LR = 14, PC = 15 };

static uint32_t word_of(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static uint32_t field(uint32_t word, unsigned lowest, unsigned width)
{
	return word >> lowest & (((uint32_t)1 << width) - 1);
}

static enum insn_kind mark(uint32_t word)
{
	if ((word & 0xffffff00) != 0xe320f000)
		return INSN_PLAIN;
	return mark_kind(word & 0xff);
}

static bool is_immediate(uint32_t word) /* B, BL; BLX into T32 code */
{
	return field(word, 25, 3) == 5;
}

static bool is_register_branch(uint32_t word) /* BX, BXJ, BLX */
{
	const uint32_t kind = word & 0x0ffffff0;

	return kind == 0x012fff10 || kind == 0x012fff20 || kind == 0x012fff30;
}

/* Data processing whose result is the program counter. */
static bool is_arithmetic(uint32_t word)
{
	const uint32_t operation = field(word, 21, 4);

	/* Multiplications, and loads and stores of less or more than a word. */
	if (field(word, 25, 3) == 0 && (word & 0x90) == 0x90)
		return false;
	/* Operations 8 to 11 compare; without the S bit they are something else altogether. */
	return field(word, 26, 2) == 0 && field(word, 12, 4) == PC &&
	       !(operation >= 8 && operation < 12);
}

static bool is_load(uint32_t word) /* LDR PC */
{
	const bool is_media = field(word, 25, 3) == 3 && word & 0x10;

	return field(word, 26, 2) == 1 && !is_media && field(word, 20, 1) && !field(word, 22, 1) &&
	       field(word, 12, 4) == PC;
}

static bool is_load_multiple(uint32_t word) /* LDM with PC */
{
	return field(word, 25, 3) == 4 && field(word, 20, 1) && field(word, PC, 1);
}

static bool is_event_return(uint32_t word)
{
	if ((word & 0xfe500000) == 0xf8100000) /* RFE */
		return true;
	if (word >> 28 == UNCONDITIONAL_SPACE)
		return false;
	return (word & 0x0fffffff) == 0x0160006e || /* ERET */
	       (is_arithmetic(word) && field(word, 20, 1)) ||
	       (is_load_multiple(word) && field(word, 22, 1));
}

static int64_t displacement(uint32_t word)
{
	const int64_t sign = (int64_t)1 << 23;

	/* The program counter is two instructions ahead. */
	return (((int64_t)field(word, 0, 24) ^ sign) - sign) * 4 + 8;
}

static enum insn_kind kind_of(const uint8_t *bytes, size_t size)
{
	if (size != 4)
		return INSN_PLAIN;

	const uint32_t word = word_of(bytes);
	const uint32_t condition = word >> 28;
	if (is_event_return(word))
		return INSN_EVENT_RETURN;
	if (condition == UNCONDITIONAL_SPACE)
		return is_immediate(word) ? INSN_UNCONDITIONAL : INSN_PLAIN;
	/* A branch to the next instruction goes where execution goes anyway. */
	if (is_immediate(word) && condition == ALWAYS && displacement(word) == 4)
		return INSN_PLAIN;
	if (is_immediate(word) || is_register_branch(word) || is_arithmetic(word) ||
	    is_load(word) || is_load_multiple(word))
		return condition == ALWAYS ? INSN_UNCONDITIONAL : INSN_CONDITIONAL;
	return mark(word);
}

static uint64_t direct_target(const uint8_t *bytes, size_t size, uint64_t next)
{
	if (size != 4)
		return 0;

	const uint32_t word = word_of(bytes);
	if (!is_immediate(word))
		return 0;
	/* Bit 24 of BLX is half a word. */
	const uint32_t half = word >> 28 == UNCONDITIONAL_SPACE ? field(word, 24, 1) * 2 : 0;
	return (uint32_t)(next - 4 + (uint64_t)displacement(word) + half);
}

static enum transfer transfer_of(const uint8_t *bytes, size_t size)
{
	const uint32_t word = word_of(bytes);

	(void)size;
	if (is_immediate(word)) {
		const bool calls = word >> 28 == UNCONDITIONAL_SPACE || field(word, 24, 1);
		return calls ? TRANSFER_CALL : TRANSFER_JUMP;
	}
	if (is_register_branch(word)) {
		if ((word & 0xf0) == 0x30)
			return TRANSFER_INDIRECT_CALL;
		return (word & 0xf) == LR ? TRANSFER_RETURN : TRANSFER_INDIRECT_JUMP;
	}
	/* MOV PC, LR; LDM; LDR PC, [SP], #4. */
	if ((word & 0x0fffffff) == 0x01a0f00e || is_load_multiple(word) ||
	    (word & 0x0fffffff) == 0x049df004)
		return TRANSFER_RETURN;
	return TRANSFER_INDIRECT_JUMP;
}

/* Modules are below the image, which begins at 3 GiB. */
const struct instruction_set arm = {
	.name = "arm",
	.elf_machine = 40,
	.kernel_space = 0xbf000000,
	.kind = kind_of,
	.direct_target = direct_target,
	.transfer = transfer_of,
};
INSTRUCTION_SET(arm);
