/* Enough of the kernel's headers to run the runtime as a user program; all others are this. */
#ifndef TYPES_H
#define TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

/* The kernel's <stdint.h> has none of these. */
#undef UINT64_C

#define ALIGN(value, to) (((value) + (to)-1) & ~((to)-1))
#define READ_ONCE(place) (*(volatile __typeof__(place) *)&(place))
#define WRITE_ONCE(place, value) (*(volatile __typeof__(place) *)&(place) = (value))
#define notrace
#define __visible
#define EXPORT_SYMBOL(name)

typedef struct {
	long value;
} atomic_long_t;

#define atomic_long_read(atomic) __atomic_load_n(&(atomic)->value, __ATOMIC_RELAXED)
#define atomic_long_set(atomic, to) __atomic_store_n(&(atomic)->value, to, __ATOMIC_RELAXED)
#define atomic_long_inc(atomic) (void)__atomic_fetch_add(&(atomic)->value, 1, __ATOMIC_RELAXED)
#define atomic_long_fetch_inc(atomic) __atomic_fetch_add(&(atomic)->value, 1, __ATOMIC_RELAXED)
#define cmpxchg(place, old, new) __sync_val_compare_and_swap(place, old, new)

#endif
