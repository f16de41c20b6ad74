# Optimise Debian's Linux 6.12 for arm64, on any machine: it is cross-built, and booted, worked,
# recorded and measured in the emulator. No Arm machine, and no branch record, is needed.

set arch arm64.
set config slim.
set seed 1.
opt debian:linux-source-6.12 autofdo rand kbench O2.
eval plain.img;opt.img syscall;overhead;proc;pipe;file.
