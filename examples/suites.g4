# What the suites say of an optimised kernel: it is trained on kbench alone, and measured on loads
# that the training never ran as well. `compute` is the control, which no kernel should move.

set config suites.  # slim, and what all suites need beyond it
set seed 1.
set repetitions 5.  # a boot takes minutes: it runs 86 cases

opt debian:linux-source-6.12 pgo rand kbench O2.

# On a guest's one processor, unixbench-n is unixbench once more. tools needs its packages:
# MEPOF_SETUP_TOOLS=1 make setup
eval plain.img;opt.img
     syscall;overhead;proc;pipe;file;
     threads;ipc;binder;network;unixbench;pages;input;sqlite;tools;compute.
