#!/bin/sh
# Writes the seeds of the targets `instructions`, `bb_address_map` and `pseudo_probe`: small
# programs of Clang 19 and 22, and single sections of theirs.
set -eu

cd "$(dirname "$0")/../seeds"
mkdir -p instructions bb_address_map pseudo_probe
source='extern int sink, (*pointer)(int);
int cold(int) __attribute__((cold));
static inline int twice(int v) { return v < 9 ? v * 2 + sink : pointer(v); }
__attribute__((noinline)) static int g(int v) { return twice(v) + pointer(v); }
int f(int v) {
    if (v == 77) { cold(1); cold(2); }
    switch (v) { case 1: return g(v); case 2: return twice(3); case 3: return pointer(7); }
    for (int i = 0; i < v; i++) sink += twice(i);
    return sink;
}'

# make COMPILER FILE FLAGS…: a program.
make() {
    compiler=$1 name=$2
    shift 2
    printf '%s\n' "$source" | "$compiler" -O2 -x c -c -o "$name.o" "$@" -
    ld.lld-22 -e f --unresolved-symbols=ignore-all -s -o "$name" "$name.o"
}

# section PROGRAM SECTION FILE: what is in a section.
section() {
    llvm-objcopy-22 --dump-section "$2=$3" "$1" /dev/null
}

# code KIND NAME FLAGS…: code, after the byte that names its machine.
code() {
    kind=$1 name=$2
    shift 2
    make clang-22 "$name" "$@"
    section "$name" .text text
    { printf "\\$kind"; cat text; } > "instructions/$name"
    rm -f "$name" "$name.o" text
}
code 000 x86 --target=x86_64-linux-gnu -mretpoline
code 001 a64 --target=aarch64-linux-gnu -mbranch-protection=standard
code 002 a32 --target=arm-linux-gnueabi -marm -march=armv7-a
code 003 t32 --target=arm-linux-gnueabi -mthumb -march=armv7-a

# map COMPILER NAME FLAGS…: a map alone.
map() {
    compiler=$1 name=$2
    shift 2
    make "$compiler" "$name" --target=x86_64-linux-gnu -fbasic-block-address-map "$@"
    section "$name" .llvm_bb_addr_map "bb_address_map/$name"
    rm -f "$name" "$name.o"
}
analysis=-pgo-analysis-map=func-entry-count,bb-freq,br-prob
map clang-19 version2 -mllvm "$analysis"
map clang-22 version5 -mllvm "$analysis" -mllvm -emit-bb-hash
map clang-22 ranges -fbasic-block-sections=all
make clang-22 bb_address_map/program --target=x86_64-linux-gnu -fbasic-block-address-map
rm bb_address_map/program
mv bb_address_map/program.o bb_address_map/object

probes='-fpseudo-probe-for-profiling -fno-unique-internal-linkage-names'
# shellcheck disable=SC2086 # several flags
make clang-22 pseudo_probe/program --target=x86_64-linux-gnu $probes \
    -mllvm -hot-cold-split=true -mllvm -hotcoldsplit-threshold=-10
section pseudo_probe/program .pseudo_probe pseudo_probe/probes
section pseudo_probe/program .pseudo_probe_desc pseudo_probe/descriptions
rm pseudo_probe/program
mv pseudo_probe/program.o pseudo_probe/object
