/* Enough of the kernel's headers to run the runtime as a user program; all others are this. */
#ifndef TYPES_H
#define TYPES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#define READ_ONCE(variable) (*(volatile __typeof__(variable) *)&(variable))
#define WRITE_ONCE(variable, value) (*(volatile __typeof__(variable) *)&(variable) = (value))
#define min_t(type, a, b) ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define notrace
#define __visible
#undef __always_inline
#define __always_inline inline
#define EXPORT_SYMBOL(name) extern char _exported_##name
#define DEFINE_SPINLOCK(name) int name
#define spin_lock_irqsave(lock, flags) ((flags) = (*(lock))++)
#define spin_unlock_irqrestore(lock, flags) ((void)(flags), --*(lock))
#define strscpy(to, from, size) ((void)snprintf(to, size, "%s", from))

typedef struct {
	long value;
} atomic_long_t, atomic64_t;

#define atomic_long_read(atomic) __atomic_load_n(&(atomic)->value, __ATOMIC_RELAXED)
#define atomic_long_set(atomic, to) __atomic_store_n(&(atomic)->value, to, __ATOMIC_RELAXED)
#define atomic_long_inc(atomic) (void)__atomic_fetch_add(&(atomic)->value, 1, __ATOMIC_RELAXED)
#define atomic_long_fetch_inc(atomic) __atomic_fetch_add(&(atomic)->value, 1, __ATOMIC_RELAXED)
#define atomic64_add(by, atomic) (void)__atomic_fetch_add(&(atomic)->value, by, __ATOMIC_RELAXED)
#define atomic64_or(by, atomic) (void)__atomic_fetch_or(&(atomic)->value, by, __ATOMIC_RELAXED)
#define cmpxchg(variable, old, new) __sync_val_compare_and_swap(variable, old, new)

static inline const void *memchr_inv(const void *start, int byte, size_t size)
{
	const char *at = start;

	for (; size; size--, at++)
		if (*at != byte)
			return at;
	return NULL;
}

#endif
