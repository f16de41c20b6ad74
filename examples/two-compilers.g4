# Kernels by two compilers in one report: each profile against the plain kernel of its own compiler,
# and all of them against each other.

set config slim.
set seed 1.

set toolchain clang.
set name clang-plain.
build debian:linux-source-6.12.
set name clang-autofdo.
opt debian:linux-source-6.12 autofdo rand kbench O2.

set toolchain gcc.
set name gcc-plain.
build debian:linux-source-6.12.
set name gcc-autofdo.
opt debian:linux-source-6.12 gcc-autofdo rand kbench O2.

eval clang-plain.img;clang-autofdo.img;gcc-plain.img;gcc-autofdo.img syscall;overhead;proc;pipe;file.
