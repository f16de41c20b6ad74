/* Encodings: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2. */
#include <string.h>

#include "../abi/x86_64/mark_encoding.h"
#include "decode.h"
#include "decode_mark.h"

static enum insn_kind mark(const uint8_t *bytes, size_t size)
{
	static const uint8_t nop[4] = {0x0f, 0x1f, 0x84, 0x00};
	uint32_t number;

	if (size != 8 || memcmp(bytes, nop, sizeof(nop)) != 0)
		return INSN_PLAIN;
	number = bytes[4] | bytes[5] << 8 | bytes[6] << 16 | (uint32_t)bytes[7] << 24;
	return mark_kind(number);
}

/* A direct jump or call with displacement zero goes where execution goes anyway. */
static enum insn_kind direct(const uint8_t *displacement, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (displacement[i] != 0)
			return INSN_UNCONDITIONAL;
	return INSN_PLAIN;
}

static int is_string_operation(uint8_t opcode)
{
	return (opcode >= 0x6c && opcode <= 0x6f) || (opcode >= 0xa4 && opcode <= 0xa7) ||
	       (opcode >= 0xaa && opcode <= 0xaf);
}

struct prefixes {
	bool repeat, is_short, is_long;
};

/* Legacy prefixes in any order, then an optional REX; returns where the opcode is. */
static size_t prefixes_of(const uint8_t *bytes, size_t size, struct prefixes *prefixes)
{
	size_t at = 0;

	*prefixes = (struct prefixes){false, false, false};
	for (; at < size; at++) {
		const uint8_t prefix = bytes[at];
		if (prefix == 0xf2 || prefix == 0xf3)
			prefixes->repeat = true;
		else if (prefix == 0x66)
			prefixes->is_short = true;
		else if (prefix != 0x67 && prefix != 0xf0 && prefix != 0x2e && prefix != 0x36 &&
			 prefix != 0x3e && prefix != 0x26 && prefix != 0x64 && prefix != 0x65)
			break;
	}
	if (at < size && (bytes[at] & 0xf0) == 0x40)
		prefixes->is_long = bytes[at++] & 8;
	return at;
}

static struct repeat repeat_of(const uint8_t *bytes, size_t size)
{
	struct prefixes prefixes;
	const uint8_t opcode = bytes[prefixes_of(bytes, size, &prefixes)];
	/* INS, OUTS: the processor knows no unit of eight bytes there. */
	const bool is_port = (opcode & 0xf0) == 0x60;
	const uint8_t unit = !(opcode & 1)			   ? 1
			     : prefixes.is_long && !is_port ? 8
			     : prefixes.is_short		   ? 2
								   : 4;

	switch (opcode & 0xfe) {
	case 0x6c: /* INS */
	case 0xa4: /* MOVS */
	case 0xaa: /* STOS */
		return (struct repeat){unit, 1, true};
	case 0xa6: /* CMPS */
		return (struct repeat){unit, 2, false};
	default: /* OUTS, LODS, SCAS */
		return (struct repeat){unit, 1, false};
	}
}

static enum insn_kind kind_of(const uint8_t *bytes, size_t size)
{
	struct prefixes prefixes;

	if (mark(bytes, size) != INSN_PLAIN)
		return mark(bytes, size);
	const size_t at = prefixes_of(bytes, size, &prefixes);
	if (at >= size)
		return INSN_PLAIN;

	const uint8_t opcode = bytes[at];
	const uint8_t next = at + 1 < size ? bytes[at + 1] : 0;
	if (is_string_operation(opcode))
		return prefixes.repeat ? INSN_REPEAT : INSN_PLAIN;
	/* jcc rel8, loop and jrcxz; jcc rel32. */
	if ((opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0)
		return INSN_CONDITIONAL;
	/* IRET; SYSRET and SYSEXIT. */
	if (opcode == 0xcf || (opcode == 0x0f && (next == 0x07 || next == 0x35)))
		return INSN_EVENT_RETURN;
	if (opcode == 0x0f)
		return (next & 0xf0) == 0x80 ? INSN_CONDITIONAL : INSN_PLAIN;
	/* call rel32, jmp rel32, jmp rel8. */
	if (opcode == 0xe8 || opcode == 0xe9 || opcode == 0xeb)
		return direct(bytes + at + 1, size - at - 1);
	/*
	 * Near and far returns. System calls and interrupts transfer control but are not branches:
	 * processors do not count them as taken branches either.
	 */
	if (opcode == 0xc2 || opcode == 0xc3 || opcode == 0xca || opcode == 0xcb)
		return INSN_UNCONDITIONAL;
	/* call and jmp through a register or memory: /2 to /5. */
	if (opcode == 0xff && ((next >> 3) & 7) >= 2 && ((next >> 3) & 7) <= 5)
		return INSN_UNCONDITIONAL;
	return INSN_PLAIN;
}

/* The displacement is the end of the instruction. */
static uint64_t direct_target(const uint8_t *bytes, size_t size, uint64_t next)
{
	size_t at = 0;

	/* Prefixes of jumps and calls: segments as branch hints, BND, REX. */
	while (at + 1 < size && (bytes[at] == 0x2e || bytes[at] == 0x3e || bytes[at] == 0xf2 ||
				 (bytes[at] & 0xf0) == 0x40))
		at++;
	const uint8_t opcode = bytes[at];
	if (size >= 2 && ((opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0 || opcode == 0xeb))
		return next + (uint64_t)(int64_t)(int8_t)bytes[size - 1];
	if (size >= 5 && (opcode == 0xe8 || opcode == 0xe9 ||
			  (opcode == 0x0f && (bytes[at + 1] & 0xf0) == 0x80))) {
		int32_t displacement;
		memcpy(&displacement, bytes + size - 4, 4);
		return next + (uint64_t)(int64_t)displacement;
	}
	return 0;
}

static enum transfer transfer_of(const uint8_t *bytes, size_t size)
{
	size_t at = 0;

	/* Prefixes of branches: segments (NOTRACK, hints), BND or REP, operand size, REX. */
	while (at + 1 < size &&
	       (bytes[at] == 0x2e || bytes[at] == 0x3e || bytes[at] == 0xf2 || bytes[at] == 0xf3 ||
		bytes[at] == 0x66 || bytes[at] == 0x64 || bytes[at] == 0x65 ||
		(bytes[at] & 0xf0) == 0x40))
		at++;
	switch (bytes[at]) {
	case 0xe8:
		return TRANSFER_CALL;
	case 0xc2:
	case 0xc3:
	case 0xca:
	case 0xcb:
		return TRANSFER_RETURN;
	case 0xff:
		return (bytes[at + 1] >> 3 & 7) <= 3 ? TRANSFER_INDIRECT_CALL
						     : TRANSFER_INDIRECT_JUMP;
	default:
		return TRANSFER_JUMP;
	}
}

/* MOV CR3, r64. */
static const char *space_register(const uint8_t *bytes, size_t size)
{
	static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
	const bool extended = size == 4 && (bytes[0] & 0xf0) == 0x40;
	const uint8_t *opcode = bytes + extended;

	if (size != 3u + extended || opcode[0] != 0x0f || opcode[1] != 0x22 ||
	    (opcode[2] & 0xf8) != 0xd8 || (extended && bytes[0] & 4))
		return NULL;
	return names[(opcode[2] & 7) | (extended ? (bytes[0] & 1) << 3 : 0)];
}

/*
 * The image and the linear map have large pages, modules and vmalloc small ones:
 * Documentation/arch/x86/x86_64/mm.rst.
 */
static bool has_small_pages(uint64_t address, bool is_text)
{
	(void)is_text;
	return (address >= 0xffffc90000000000 && address < 0xffffe90000000000) ||
	       (address >= 0xfffffe0000000000 && address < 0xffffffff80000000) ||
	       address >= 0xffffffffa0000000;
}

const struct instruction_set x86_64 = {
	.name = "x86_64",
	.elf_machine = 62,
	.kernel_space = (uint64_t)1 << 63,
	.kind = kind_of,
	.repeat = repeat_of,
	.direct_target = direct_target,
	/* In user code, and on the first instructions after it, SWAPGS has not swapped them. */
	.cpu_bases = {"gs_base", "k_gs_base"},
	.transfer = transfer_of,
	.space_register = space_register,
	.space = "cr3",
	/*
	 * With page-table isolation, bit 12 distinguishes the tables of the kernel and of the
	 * process.
	 */
	.space_low_bits = 13,
	.has_small_pages = has_small_pages,
};
INSTRUCTION_SET(x86_64);
