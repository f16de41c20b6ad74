# What the suites say of an optimised kernel: it is trained on kbench alone, and measured on loads
# that the training never ran. `compute` is the control, which no kernel should move.

set config suites.  # slim, and what all suites need beyond it
set seed 1.

opt debian:linux-source-6.12 pgo rand kbench O2.

eval plain.img;opt.img syscall;overhead;proc;pipe;file;threads;ipc;binder;network;unixbench;unixbench-n;pages;input;sqlite;tools;compute.
