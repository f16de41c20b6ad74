/*
 * Loops of a few instructions, each for one thing that a core does. `time` gives the parts that each
 * has and the cycles that one takes here; `model`, two intervals between marks of each, of which the
 * second has that many parts more.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <x86intrin.h>

#include "marks.h"

enum { BITS = 200000, SEQUENCE = 10000, TURNS = 300, MULTIPLICATION = 3 };

/* For branches: by chance, so that no predictor knows them by heart; the first of these again and
 * again; and all alike. */
static uint8_t random_bits[2 * BITS], sequence[2 * BITS], zeros[2 * BITS];

struct loop {
	const char *title;
	void (*run)(uint64_t rounds);
	uint64_t rounds, parts; /* of a timing, and of a round */
};

/* `i` is the round; %rsi points to a byte for it, %rdi to memory that nobody else uses. */
#define LOOP(name, bytes, body)                                                                   \
	static __attribute__((noinline, aligned(64))) void name(uint64_t rounds)                  \
	{                                                                                         \
		static uint64_t memory[8];                                                        \
		for (uint64_t i = 0; i < rounds; i++)                                             \
			__asm__ volatile(body                                                     \
					 :                                                        \
					 : [i] "r"(i), "S"((bytes) + i), "D"(memory)              \
					 : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "xmm2", \
					   "xmm4", "xmm6", "cc", "memory");                       \
	}

#define TIMES(n, body) ".rept " #n "\n" body "\n.endr\n"
#define ADD6                                                                          \
	"add $1,%%rax\nadd $1,%%rdx\nadd $1,%%r8\nadd $1,%%r9\nadd $1,%%r10\nadd $1," \
	"%%r11\n"
/* Of as many execution units as keep up with six instructions in a cycle. */
#define MIX6                                                                               \
	"add $1,%%r8\nmovdqa %%xmm1,%%xmm2\npaddd %%xmm3,%%xmm4\nadd $1,%%r9\npaddd "      \
	"%%xmm5,%%xmm6\nadd $1,%%r10\n"
#define BLOCK "jmp 1f\n.p2align 5\n1:"
#define EITHER "jz 1f\nadd $1,%%r8\nadd $1,%%r8\njmp 2f\n1: sub $1,%%r8\nsub $1,%%r8\n2:\n"
#define CHAIN "movzbl (%%rsi),%%eax\n" TIMES(4, "imul $1,%%eax,%%eax") "test %%eax,%%eax\n"

LOOP(multiplications, zeros, TIMES(4, "imul %%rax,%%rax"))
LOOP(additions, zeros, TIMES(4, ADD6))
LOOP(mixed, zeros, TIMES(4, MIX6))
LOOP(not_taken, zeros, "cmp %%rax,%%rax\n" TIMES(12, "jne 1f") "1:")
LOOP(jumps, zeros, TIMES(8, "jmp 1f\n.p2align 6\n1:"))
LOOP(blocks, zeros, TIMES(8, "jmp 1f\n.skip 60,0x90\n1: add $1,%%rax\nadd $1,%%rdx\nadd $1,%%r8"))
LOOP(many_jumps, zeros, TIMES(3000, "jmp 1f\n.p2align 3\n1:"))
LOOP(lines, zeros, TIMES(1400, "jmp 1f\n.p2align 6\n1:"))
LOOP(calls, zeros, TIMES(4, "call 5f") "jmp 6f\n5: ret\n6:")
LOOP(long_calls, zeros, TIMES(4, "call 5f") "jmp 6f\n.p2align 6\n5: " ADD6 "ret\n6:")
LOOP(nested_calls, zeros,
     "call 1f\njmp 6f\n.p2align 6\n1: call 2f\nret\n.p2align 6\n2: call 3f\nret\n.p2align 6\n"
     "3: call 4f\nret\n.p2align 6\n4: ret\n6:")
LOOP(one_target, zeros, TIMES(4, "lea 1f(%%rip),%%rax\njmp *%%rax\n.p2align 6\n1:"))
LOOP(four_targets, zeros,
     "mov %[i],%%rcx\nand $3,%%ecx\nshl $6,%%ecx\n" TIMES(
	     4, "lea 5f(%%rip),%%rax\nadd %%rcx,%%rax\njmp *%%rax\n.p2align 6\n5: "
		"jmp 6f\n.p2align 6\njmp 6f\n.p2align 6\njmp 6f\n.p2align 6\njmp 6f\n.p2align 6\n6:"))
LOOP(two_targets, random_bits,
     "movzbl (%%rsi),%%ecx\nshl $4,%%ecx\nlea 5f(%%rip),%%rax\nadd %%rcx,%%rax\n"
     "jmp *%%rax\n.p2align 4\n5: " TIMES(2, "jmp 6f\n.p2align 4") "6:")
LOOP(constant, zeros, "cmpb $0,(%%rsi)\n" EITHER)
LOOP(mispredicted, random_bits, "cmpb $0,(%%rsi)\n" EITHER)
LOOP(by_heart, sequence, "cmpb $0,(%%rsi)\n" EITHER)
LOOP(constant_late, zeros, CHAIN EITHER)
LOOP(mispredicted_late, random_bits, CHAIN EITHER)
LOOP(blocks_768, zeros, ".p2align 6\n" TIMES(768, MIX6 BLOCK))
LOOP(blocks_896, zeros, ".p2align 6\n" TIMES(896, MIX6 BLOCK))
LOOP(straight, zeros, TIMES(1000, MIX6))
LOOP(long_straight, zeros, TIMES(1400, MIX6))
LOOP(forwarded, zeros, TIMES(4, "mov %%rax,(%%rdi)\nmov (%%rdi),%%rax"))
LOOP(forwarded_by_turns, zeros,
     "xor $1,%%ecx\nand $1,%%ecx\njz 1f\nmov %%rax,(%%rdi)\njmp 2f\n1: mov %%rax,(%%rdi)\n"
     "2: mov (%%rdi),%%rax\n")
LOOP(forwarded_part, zeros, TIMES(4, "mov %%rax,(%%rdi)\nmovzwl 2(%%rdi),%%eax"))
LOOP(forwarded_sum, zeros, TIMES(4, "mov %%rax,(%%rdi)\nadd (%%rdi),%%rax"))
LOOP(forwarded_more, zeros, TIMES(4, "mov %%eax,(%%rdi)\nmov (%%rdi),%%rax"))
LOOP(stores, zeros, TIMES(6, "mov %%rax,(%%rdi)\nmov %%rax,8(%%rdi)\nmov %%rax,16(%%rdi)\nmov %%rax,24(%%rdi)"))
LOOP(changes, zeros, TIMES(12, "incl (%%rdi)\nincl 8(%%rdi)\nincl 16(%%rdi)\nincl 24(%%rdi)"))
LOOP(conditions, zeros, TIMES(12, "sete %%al\nsetl %%dl"))
LOOP(products, zeros, TIMES(12, "mov %%rsi,%%rax\nmul %%rdi"))
LOOP(nops, zeros, TIMES(24, "nopw (%%rax,%%rax)\nnop"))
LOOP(scaled, zeros, TIMES(12, "lea (%%rdx,%%rax,4),%%rax"))
LOOP(three_parts, zeros, TIMES(12, "lea 8(%%rax,%%rdx),%%rax"))
LOOP(loads, zeros, "and $0,%%r10\n" TIMES(12, "mov (%%rdi,%%r10),%%r10\nand $0,%%r10"))
LOOP(scaled_loads, zeros, "and $0,%%r10\n" TIMES(12, "mov (%%rdi,%%r10,8),%%r10\nand $0,%%r10"))
#define WITH_FOUR "jz 1f\n" TIMES(4, "mov %%rdi,%%r9")
LOOP(fused, zeros, "mov $99,%%eax\n" TIMES(8, "sub $1,%%rax\n" WITH_FOUR) "1:")
LOOP(not_fused, zeros, "mov $99,%%eax\n" TIMES(8, "cmp (%%rdi),%%rax\n" WITH_FOUR) "1:")
LOOP(split_jumps, zeros, TIMES(8, "jmp 1f\n.p2align 6\n.skip 63,0x90\n1:") "nop")

static const struct loop loops[] = {
	{"a chain of multiplications", multiplications, 10000, 4},
	{"additions", additions, 10000, 24},
	{"instructions for all units", mixed, 10000, 24},
	{"conditional branches, not taken", not_taken, 10000, 12},
	{"jumps from line to line", jumps, 10000, 8},
	{"the same with three additions each", blocks, 10000, 8},
	{"3,000 jumps", many_jumps, 100, 3000},
	{"1,400 jumps from line to line", lines, 100, 1400},
	{"calls and returns", calls, 10000, 4},
	{"the same with six additions each", long_calls, 10000, 4},
	{"calls and returns, nested", nested_calls, 10000, 4},
	{"indirect jumps, one target each", one_target, 10000, 4},
	{"indirect jumps and jumps, four alternating targets", four_targets, 10000, 4},
	{"an indirect jump, two random targets", two_targets, BITS, 1},
	{"a branch that is always taken", constant, BITS, 1},
	{"a random branch", mispredicted, BITS, 1},
	{"10,000 random branches, repeated", by_heart, BITS, 1},
	{"one that is always taken, after four multiplications", constant_late, BITS, 1},
	{"a random one, after four multiplications", mispredicted_late, BITS, 1},
	{"768 blocks of seven instructions", blocks_768, 100, 768},
	{"896 blocks of seven instructions", blocks_896, 100, 896},
	{"6,000 instructions for all units", straight, 100, 6000},
	{"8,400 instructions for all units", long_straight, 100, 8400},
	{"a store and a load of it", forwarded, 10000, 4},
	{"two alternating stores and a load of each", forwarded_by_turns, 10000, 1},
	{"a store and a load of a part of it", forwarded_part, 10000, 4},
	{"a store and an addition of it", forwarded_sum, 10000, 4},
	{"a store and a load of more than it", forwarded_more, 10000, 4},
	{"stores", stores, 10000, 24},
	{"additions to memory", changes, 10000, 48},
	{"conditions stored in registers", conditions, 10000, 24},
	{"products of 128 bits", products, 10000, 12},
	{"no-operations", nops, 10000, 48},
	{"a chain of sums with a scaled part", scaled, 10000, 12},
	{"a chain of sums of three parts", three_parts, 10000, 12},
	{"a chain of loads, and an operation each", loads, 10000, 12},
	{"the same, with a scaled part of the address", scaled_loads, 10000, 12},
	{"subtractions and branches, with four copies", fused, 10000, 8},
	{"comparisons with memory and branches, with four copies", not_fused, 10000, 8},
	{"jumps that end in the next line", split_jumps, 10000, 8},
};

static uint64_t least(const struct loop *loop)
{
	uint64_t found = UINT64_MAX;

	for (int turn = 0; turn < TURNS; turn++) {
		const uint64_t begin = __rdtsc();
		loop->run(loop->rounds);
		const uint64_t ticks = __rdtsc() - begin;
		found = ticks < found ? ticks : found;
	}
	return found;
}

int main(int argc, char **argv)
{
	const bool times = argc > 1 && strcmp(argv[1], "time") == 0;
	const double cycle = times ? (double)least(&loops[0]) /
					     (double)(loops[0].rounds * loops[0].parts * MULTIPLICATION)
				   : 0;
	uint64_t state = 0x9e3779b97f4a7c15u;

	for (size_t i = 0; i < sizeof(random_bits); i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		random_bits[i] = state >> 33 & 1;
		sequence[i] = random_bits[i % SEQUENCE];
	}
	for (size_t i = 0; i < sizeof(loops) / sizeof(*loops); i++) {
		const struct loop *loop = &loops[i];
		const uint64_t parts = loop->rounds * loop->parts;
		if (times) {
			printf("%s\t%" PRIu64 "\t%.3f\n", loop->title, parts,
			       (double)least(loop) / cycle / (double)parts);
			continue;
		}
		for (uint64_t rounds = loop->rounds; rounds <= 2 * loop->rounds; rounds += loop->rounds) {
			mepof_mark_start();
			loop->run(rounds);
			mepof_mark_stop();
		}
	}
	return 0;
}
