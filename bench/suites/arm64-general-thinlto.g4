# bench/suites/general-thinlto.g4 for arm64: counted and measured on an emulated Arm.

set arch arm64.
set config suites.
set seed 1.
set repetitions 3.

set name ThinLTO.
build debian:linux-source-6.12 ThinLTO.

opt debian:linux-source-6.12 pgo trav general O2;ThinLTO.

# In kernel instructions, of cases of which the training knows none. ThinLTO, for comparison, has no
# profile and misses them.
goal geomean 8.
goal worst -1.

eval plain.img;opt.img;ThinLTO.img
     syscall;overhead;proc;pipe;file;
     threads;ipc;binder;network;unixbench;pages;input;sqlite;tools;compute.
