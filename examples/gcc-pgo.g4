# PGO by GCC: counters of arcs and value profiles, against a plain kernel of the same compiler.

set toolchain gcc.
set config slim.
set seed 1.

opt debian:linux-source-6.12 gcc-pgo rand kbench O2.

eval plain.img;opt.img syscall;overhead;proc;pipe;file.
