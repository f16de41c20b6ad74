#!/bin/sh
# Writes the seeds of the target `symbolizer`: small objects with debug information of every kind.
set -eu

cd "$(dirname "$0")/../seeds"
mkdir -p symbolizer
cd symbolizer
source='int sink;
static inline int twice(int v) { return v * 2 + sink; }
int f(int v) { return v > 3 ? twice(v) : twice(sink); }'

make() {
    name=$1
    shift
    printf '%s\n' "$source" |
        clang-22 -O2 -g -ffile-compilation-dir=. -x c -c -o "$name" "$@" -
}

make dwarf5 --target=x86_64-linux-gnu -gdwarf-5
make dwarf4 --target=x86_64-linux-gnu -gdwarf-4 -ffunction-sections
make arm64 --target=aarch64-linux-gnu
make thumb --target=arm-linux-gnueabi -mthumb -march=armv7-a
make zlib --target=x86_64-linux-gnu -gz=zlib
make zstd --target=x86_64-linux-gnu -gz=zstd
make profiling --target=x86_64-linux-gnu -fdebug-info-for-profiling -fbasic-block-address-map
ld.lld-22 -e f -o program dwarf5
