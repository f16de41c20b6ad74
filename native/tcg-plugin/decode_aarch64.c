/* Encodings: Arm Architecture Reference Manual for A-profile, C4.1, "Branches, Exception
 * Generating and System instructions". */
#include <string.h>

#include "../abi/aarch64/mark_encoding.h"
#include "decode.h"
#include "decode_mark.h"

static uint32_t word_of(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

/* The signed field of `width` bits from bit `lowest` on, in instructions; returns bytes. */
static int64_t displacement(uint32_t word, unsigned lowest, unsigned width)
{
	const int64_t sign = (int64_t)1 << (width - 1);
	const int64_t field = word >> lowest & (((uint32_t)1 << width) - 1);

	return ((field ^ sign) - sign) * 4;
}

/* MOVZ XZR, #number. */
static enum insn_kind mark(uint32_t word)
{
	if ((word & 0xffe0001f) != 0xd280001f)
		return INSN_PLAIN;
	return mark_kind(word >> 5 & 0xffff);
}

static bool is_immediate(uint32_t word) /* B, BL */
{
	return (word & 0x7c000000) == 0x14000000;
}

static bool is_conditional(uint32_t word) /* B.cond, BC.cond */
{
	return (word & 0xff000000) == 0x54000000;
}

static bool is_compare(uint32_t word) /* CBZ, CBNZ */
{
	return (word & 0x7e000000) == 0x34000000;
}

static bool is_test(uint32_t word) /* TBZ, TBNZ */
{
	return (word & 0x7e000000) == 0x36000000;
}

static enum insn_kind kind_of(const uint8_t *bytes, size_t size)
{
	if (size != 4)
		return INSN_PLAIN;

	const uint32_t word = word_of(bytes);
	/* A branch to the next instruction goes where execution goes anyway. */
	if (is_immediate(word))
		return displacement(word, 0, 26) == 4 ? INSN_PLAIN : INSN_UNCONDITIONAL;
	if (is_conditional(word) || is_compare(word) || is_test(word))
		return INSN_CONDITIONAL;
	/* Through a register; with bit 24 set, two registers authenticate the pointer. */
	if ((word & 0xfe000000) == 0xd6000000) {
		switch (word >> 21 & 0xf) {
		case 0x0: /* BR, BRAAZ, BRABZ */
		case 0x1: /* BLR, BLRAAZ, BLRABZ */
		case 0x2: /* RET, RETAA, RETAB */
		case 0x8: /* BRAA, BRAB */
		case 0x9: /* BLRAA, BLRAB */
			return INSN_UNCONDITIONAL;
		case 0x4: /* ERET, ERETAA, ERETAB */
		case 0x5: /* DRPS */
			return INSN_EVENT_RETURN;
		default:
			return INSN_PLAIN;
		}
	}
	/* RETAASPPC, RETABSPPC: a return whose modifier is an earlier address. */
	if ((word & 0xffc0001f) == 0x5500001f)
		return INSN_UNCONDITIONAL;
	return mark(word);
}

static uint64_t direct_target(const uint8_t *bytes, size_t size, uint64_t next)
{
	if (size != 4)
		return 0;

	const uint32_t word = word_of(bytes);
	const uint64_t address = next - 4;
	if (is_immediate(word))
		return address + (uint64_t)displacement(word, 0, 26);
	if (is_conditional(word) || is_compare(word))
		return address + (uint64_t)displacement(word, 5, 19);
	if (is_test(word))
		return address + (uint64_t)displacement(word, 5, 14);
	return 0;
}

static enum transfer transfer_of(const uint8_t *bytes, size_t size)
{
	const uint32_t word = word_of(bytes);

	(void)size;
	if (is_immediate(word))
		return word >> 31 ? TRANSFER_CALL : TRANSFER_JUMP;
	/* RETAASPPC, RETABSPPC. */
	if ((word & 0xff000000) == 0x55000000)
		return TRANSFER_RETURN;
	switch (word >> 21 & 0x7) {
	case 1:
		return TRANSFER_INDIRECT_CALL;
	case 2:
		return TRANSFER_RETURN;
	default:
		return TRANSFER_INDIRECT_JUMP;
	}
}

/* MSR TTBR0_EL1, Xt. */
static const char *space_register(const uint8_t *bytes, size_t size)
{
	static const char *const names[] = {
		"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10",
		"x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
		"x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", NULL};

	if (size != 4 || (word_of(bytes) & ~0x1fu) != 0xd5182000)
		return NULL;
	return names[word_of(bytes) & 0x1f];
}

/* Text of modules; the image's is above: Documentation/arch/arm64/memory.rst. */
static bool has_small_pages(uint64_t address, bool is_text)
{
	return is_text && address < 0xffff800080000000;
}

const struct instruction_set aarch64 = {
	.name = "aarch64",
	.elf_machine = 183,
	.kernel_space = (uint64_t)1 << 63,
	.kind = kind_of,
	.direct_target = direct_target,
	.cpu_bases = {"TPIDR_EL1"},
	.transfer = transfer_of,
	.space_register = space_register,
	.space = "TTBR0_EL1",
	.space_low_bits = 12,
	.has_small_pages = has_small_pages,
};
INSTRUCTION_SET(aarch64);
