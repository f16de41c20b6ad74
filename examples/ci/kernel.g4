# What a CI runs: a kernel that must gain 8 %, with no case more than 1 % worse than before.

set config slim.
set seed 1.

goal geomean 8.
goal worst -1.

opt debian:linux-source-6.12 pgo rand kbench O2.
eval plain.img;opt.img syscall;overhead;proc;pipe;file.
