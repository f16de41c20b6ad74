/* A machine of a stack and registers, whose instructions a switch dispatches. */
#include "work.h"

enum op { PUSH, LOAD, STORE, ADD, SUB, MUL, XOR, SHIFT, LESS, JUMP, BRANCH, DUP, DROP, SWAP, STOP };

struct instruction {
	enum op op;
	int64_t operand;
};

/* Collatz sequences of the numbers from register 0 to register 3, and a sum of their lengths. */
static const struct instruction program[] = {
	{LOAD, 0},  {STORE, 0},			     /* 0: n */
	{LOAD, 0},  {STORE, 1},			     /* 2: x = n */
	{LOAD, 1},  {PUSH, 2},	{LESS, 0}, {BRANCH, 24}, /* 4: x < 2: next */
	{LOAD, 2},  {PUSH, 1},	{ADD, 0},  {STORE, 2},	 /* 8: steps++ */
	{LOAD, 1},  {DUP, 0},	{SHIFT, 1}, {DUP, 0},	 /* 12: x, x/2, x/2 */
	{ADD, 0},   {XOR, 0},	{BRANCH, 20},		 /* 16: odd? */
	{JUMP, 29},					 /* 19 */
	{LOAD, 1},  {PUSH, 3},	{MUL, 0}, {JUMP, 32},	 /* 20: 3x */
	{LOAD, 0},  {PUSH, 1},	{ADD, 0}, {STORE, 0},	 /* 24: n++ */
	{JUMP, 36},					 /* 28 */
	{LOAD, 1},  {SHIFT, 1}, {JUMP, 34},		 /* 29: x / 2 */
	{PUSH, 1},  {ADD, 0},				 /* 32: + 1 */
	{STORE, 1}, {JUMP, 4},				 /* 34: x = */
	{LOAD, 0},  {LOAD, 3}, {LESS, 0}, {BRANCH, 2}, /* 36: n < limit */
	{STOP, 0},
};

uint64_t work(uint64_t seed)
{
	int64_t stack[32] = {0}, registers[4] = {0};
	uint64_t state = seed;
	const struct instruction *at = program;
	int top = 0;

	registers[0] = 2 + draw(&state) % 100000;
	registers[3] = registers[0] + 700;
	for (;; at++) {
		switch (at->op) {
		case PUSH:
			stack[++top] = at->operand;
			break;
		case LOAD:
			stack[++top] = registers[at->operand];
			break;
		case STORE:
			registers[at->operand] = stack[top--];
			break;
		case ADD:
			top--;
			stack[top] += stack[top + 1];
			break;
		case SUB:
			top--;
			stack[top] -= stack[top + 1];
			break;
		case MUL:
			top--;
			stack[top] *= stack[top + 1];
			break;
		case XOR:
			top--;
			stack[top] ^= stack[top + 1];
			break;
		case SHIFT:
			stack[top] >>= at->operand;
			break;
		case LESS:
			top--;
			stack[top] = stack[top] < stack[top + 1];
			break;
		case JUMP:
			at = program + at->operand - 1;
			break;
		case BRANCH:
			if (stack[top--])
				at = program + at->operand - 1;
			break;
		case DUP:
			top++;
			stack[top] = stack[top - 1];
			break;
		case DROP:
			top--;
			break;
		case SWAP: {
			const int64_t swapped = stack[top];
			stack[top] = stack[top - 1];
			stack[top - 1] = swapped;
			break;
		}
		case STOP:
			return (uint64_t)registers[2];
		}
	}
}
