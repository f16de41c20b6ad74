# Every suite on a kernel that was trained on general alone, so none of the measured work is trained.

set config suites.
set seed 1.
set repetitions 3.

opt debian:linux-source-6.12 pgo trav general O2.

# In kernel instructions, of cases of which the training knows none.
goal geomean 8.
goal worst -1.

eval plain.img;opt.img
     syscall;overhead;proc;pipe;file;
     threads;ipc;binder;network;unixbench;pages;input;sqlite;tools;compute.
