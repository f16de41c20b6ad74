# GCC's options and PGO on x86-64, normalised to -O2, trained on the measured work.

set toolchain gcc-12.
set arch x86-64.
set config suites.
set core skylake.
set seed 1.
set repetitions 3.

set name os.
build debian:linux-source-6.12 Os.
set name o3.
build debian:linux-source-6.12 O3.
set name pgo.
opt debian:linux-source-6.12 gcc-pgo trav threads;binder;sqlite O2.

eval plain.img;os.img;o3.img;pgo.img threads;binder;sqlite.
