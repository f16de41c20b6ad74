# What value profiles gain: the same counts with them, and those of arcs alone.

set toolchain gcc-12.
set config slim.
set seed 1.

set name gcc-pgo.
opt debian:linux-source-6.12 gcc-pgo rand kbench O2.

set name gcc-pgo-arcs.
recomp debian:linux-source-6.12 gcc-pgo O2;NoValues.

set repetitions 5.
set core skylake.
eval plain.img;gcc-pgo.img;gcc-pgo-arcs.img syscall;overhead;proc;pipe;file.
