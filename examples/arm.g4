# A kernel for 32-bit Arm, optimised by GCC, cross-built on any machine, and booted and counted in
# the emulator. This needs the packages that `MEPOF_SETUP_ARM=1 make setup` installs.

set toolchain gcc.
set arch arm.
set config slim.
set seed 1.

opt debian:linux-source-6.12 gcc-pgo rand kbench O2.

eval plain.img;opt.img syscall;overhead;proc;pipe;file.
