/*
 * Encodings: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2; Arm
 * Architecture Reference Manual for A-profile, C4.1.
 */
#include "transfer.h"

static enum transfer x86_transfer(const uint8_t *bytes, size_t size)
{
	size_t at = 0;

	/* Prefixes that stand before branches: segments (NOTRACK, hints), BND or REP, operand
	 * size, REX. */
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

static uint32_t word_of(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static enum transfer arm64_transfer(const uint8_t *bytes)
{
	const uint32_t word = word_of(bytes);

	if ((word & 0x7c000000) == 0x14000000)
		return word >> 31 ? TRANSFER_CALL : TRANSFER_JUMP;
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

struct branch branch_of(const struct instruction_set *set, enum insn_kind kind,
			const uint8_t *bytes, size_t size, uint64_t next)
{
	struct branch branch = {
		.address = next - size, .next = next, .target = set->direct_target(bytes, size, next)};

	if (kind == INSN_CONDITIONAL)
		branch.transfer = TRANSFER_CONDITIONAL;
	else if (kind == INSN_UNCONDITIONAL)
		branch.transfer = set == &x86_64 ? x86_transfer(bytes, size) : arm64_transfer(bytes);
	return branch;
}

static const char *x86_space_register(const uint8_t *bytes, size_t size)
{
	static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
	const bool extended = size == 4 && (bytes[0] & 0xf0) == 0x40;
	const uint8_t *opcode = bytes + extended;

	/* MOV CR3, r64. */
	if (size != 3u + extended || opcode[0] != 0x0f || opcode[1] != 0x22 ||
	    (opcode[2] & 0xf8) != 0xd8 || (extended && bytes[0] & 4))
		return NULL;
	return names[(opcode[2] & 7) | (extended ? (bytes[0] & 1) << 3 : 0)];
}

static const char *arm64_space_register(const uint8_t *bytes, size_t size)
{
	static const char *const names[] = {
		"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10",
		"x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
		"x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", NULL};

	/* MSR TTBR0_EL1, Xt. */
	if (size != 4 || (word_of(bytes) & ~0x1fu) != 0xd5182000)
		return NULL;
	return names[word_of(bytes) & 0x1f];
}

const char *space_register(const struct instruction_set *set, const uint8_t *bytes, size_t size)
{
	return set == &x86_64 ? x86_space_register(bytes, size) : arm64_space_register(bytes, size);
}
