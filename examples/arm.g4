# The plain kernel of GCC for 32-bit Arm, cross-built on any machine, and booted and counted in the
# emulator. This needs the packages that `MEPOF_SETUP_ARM=1 make setup` installs.

set toolchain gcc.
set arch arm.
set config slim.
set seed 1.

build debian:linux-source-6.12.

eval build.img syscall;overhead;proc;pipe;file.
