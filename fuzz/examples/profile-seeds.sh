#!/bin/sh
# Writes the seeds of the targets `profile_…`: small profiles of every form and kind.
set -eu

cd "$(dirname "$0")/../seeds"
mkdir -p profile_text profile_ext_binary profile_gcov

cat > profile_text/lines << END
work:20000:20
 2: 20
 3.1: 1000
 5: 990 helper:990 ns::f(int):3
 65535: 10
 9: helper:18
  1: 18
  2: leaf:2
   1.7: 2
helper:990:990
 2: 990 sink:990
 !Flat
END
cat > profile_text/probes << END
# With checksums.
work:4000:20
 1: 20
 2: helper:7
  1: 7
  !CFGChecksum: 9
  !Attributes: 2
 !CFGChecksum: 844597260051073
helper:990:990
 1: 990
 !CFGChecksum: 281479271677951
END
printf 'work:9:1\n 1: 9\n 2: vtables _ZTV1a:1 \n' > profile_text/virtual-tables
printf '123:9:1\n 1: 9 456:1\n 2: 77:3\n  1: 3\n' > profile_text/hashes

symbols=$(mktemp)
trap 'rm -f "$symbols"' EXIT
printf 'alpha\nbeta\n' > "$symbols"
merge() {
    input=$1
    output=$2
    shift 2
    llvm-profdata-22 merge --sample "$@" "profile_text/$input" -o "profile_ext_binary/$output"
}
merge lines lines --extbinary --prof-sym-list="$symbols"
merge probes probes --extbinary
merge lines hashes --extbinary --use-md5
merge lines compressed --extbinary --compress-all-sections --prof-sym-list="$symbols"
merge lines split --extbinary --split-layout
merge virtual-tables virtual-tables --extbinary --extbinary-write-vtable-type-prof
merge lines plain --binary

cargo run --quiet -p mepof-profile --manifest-path ../../Cargo.toml --example profile_convert \
    profile_text/lines gcov profile_gcov/lines
