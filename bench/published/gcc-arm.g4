# GCC's options and PGO on 32-bit Arm, Figs. 3 and 4, normalised to -O2, trained on the measured work.

set toolchain gcc-12.
set arch arm.
set config suites.
set seed 1.
set repetitions 3.

set name os.
build debian:linux-source-6.12 Os.
set name o3.
build debian:linux-source-6.12 O3.
set name pgo.
opt debian:linux-source-6.12 gcc-pgo trav threads;binder O2.

eval plain.img;os.img;o3.img;pgo.img threads;binder.
