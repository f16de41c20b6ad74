# AutoFDO by GCC: the kernel that is profiled is an optimised one, and the emulator records every
# branch that it takes. Against a plain kernel of the same compiler.

set toolchain gcc.
set config slim.
set seed 1.

opt debian:linux-source-6.12 gcc-autofdo rand kbench O2.

eval plain.img;opt.img syscall;overhead;proc;pipe;file.
