# The mitigations that distributions turn on, which slim lacks.

set config slim+mitigations.
set seed 1.

set name pgo.
opt debian:linux-source-6.12 pgo rand kbench O2.

set name autofdo.
opt debian:linux-source-6.12 autofdo rand kbench O2.

set repetitions 5.
set core skylake.
eval plain.img;pgo.img;autofdo.img syscall;overhead;proc;pipe;file.
