/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The data that Clang's IR instrumentation leaves in a kernel image.
 *
 * The layout of every structure comes from the compiler's own InstrProfData.inc,
 * which is laid beside this file for the compiler that builds the kernel: that file
 * is a list of fields to be expanded by whoever includes it, so the runtime follows
 * the compiler's raw format version without knowing it.
 */
#ifndef _MEPOF_PROFILE_H
#define _MEPOF_PROFILE_H

#include <linux/types.h>

/* Asked for no fields, the list gives its constants. */
#include "InstrProfData.inc"

typedef uintptr_t IntPtrT;
typedef struct value_node *PtrToNodeT;

enum value_kind {
#define VALUE_PROF_KIND(Enumerator, Value, Descr) Enumerator = Value,
#include "InstrProfData.inc"
};

/* One record a function, in section __llvm_prf_data. */
struct function_data {
#define INSTR_PROF_DATA(Type, LLVMType, Name, Initializer) Type Name;
#include "InstrProfData.inc"
};

/* One observed value of a value site; the compiler reserves them in __llvm_prf_vnds. */
struct value_node {
#define INSTR_PROF_VALUE_NODE(Type, LLVMType, Name, Initializer) Type Name;
#include "InstrProfData.inc"
};

/*
 * How many distinct values a site keeps. The compiler uses the most frequent few; the
 * raw format holds the number in a byte.
 */
#define VALUES_PER_SITE 16

/* Bounds of the sections, from our part of the linker script. */
extern struct function_data __mepof_prf_data_start[], __mepof_prf_data_end[];
extern char __mepof_prf_cnts_start[], __mepof_prf_cnts_end[];
extern char __mepof_prf_bits_start[], __mepof_prf_bits_end[];
extern char __mepof_prf_names_start[], __mepof_prf_names_end[];
extern struct value_node __mepof_prf_vnds_start[], __mepof_prf_vnds_end[];

static inline u32 number_of_value_sites(const struct function_data *data)
{
	u32 kind, sites = 0;

	for (kind = IPVK_First; kind <= IPVK_Last; kind++)
		sites += data->NumValueSites[kind];
	return sites;
}

/* value_profile.c */
u64 mepof_values_dropped(void);
void mepof_values_reset(void);

/* raw_profile.c */
size_t mepof_raw_profile_bound(void);
size_t mepof_raw_profile_write(void *buffer, size_t size);

#endif /* _MEPOF_PROFILE_H */
