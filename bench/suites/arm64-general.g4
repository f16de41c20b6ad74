# bench/suites/general.g4 for arm64: recorded and measured on an emulated Arm.

set arch arm64.
set config suites.
set seed 1.
set repetitions 3.

opt debian:linux-source-6.12 autofdo trav general O2.

# In kernel instructions, of cases of which the training knows none.
goal geomean 8.
goal worst -1.

eval plain.img;opt.img
     syscall;overhead;proc;pipe;file;
     threads;ipc;binder;network;unixbench;pages;input;sqlite;tools;compute.
