# Counters in two rounds, the second after inlining, against those of one.

set config slim.
set seed 1.

set name once.
opt debian:linux-source-6.12 pgo rand kbench O2.

set name twice.
opt debian:linux-source-6.12 cspgo rand kbench O2.

eval plain.img;once.img;twice.img syscall;overhead;proc;pipe;file.
