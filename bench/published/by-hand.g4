# What bench/published/by-hand.sh does by hand: GCC's PGO of a kernel, trained by a person's list.

set toolchain gcc-12.
set config slim.
set seed 1.
set repetitions 1.

opt debian:linux-source-6.12 gcc-pgo script kbench:bench/published/person.txt O2.
eval plain.img;opt.img syscall;overhead;proc;pipe;file.
