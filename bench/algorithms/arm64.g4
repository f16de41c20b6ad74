# The same for arm64, cross-built, recorded on an emulated Arm.

set arch arm64.
set config slim.
set seed 1.

set name autofdo.
opt debian:linux-source-6.12 autofdo rand kbench O2.

set repetitions 5.
set core cortex-a76.
eval plain.img;autofdo.img syscall;overhead;proc;pipe;file.
