# Optimise Debian's Linux 6.12 for arm64 on any machine: the kernel is cross-built, and booted,
# recorded and measured in the emulator. This needs no Arm machine, and the packages that
# `MEPOF_SETUP_ARM64=1 make setup` installs.

set arch arm64.
set config slim.
set seed 1.
opt debian:linux-source-6.12 autofdo rand kbench O2.
eval plain.img;opt.img syscall;overhead;proc;pipe;file.
