# Every suite but jni on an optimised kernel that was trained on kbench alone, so most of the
# measured work is untrained. `compute` is the control, which no kernel should change.

set config suites.  # slim, and what all suites need beyond it
set seed 1.
set repetitions 5.  # a boot takes minutes: it runs 86 cases

opt debian:linux-source-6.12 pgo rand kbench O2.

# A guest has one processor, where unixbench-n is the same as unixbench. tools needs its packages:
# MEPOF_SETUP_TOOLS=1 make setup
eval plain.img;opt.img
     syscall;overhead;proc;pipe;file;
     threads;ipc;binder;network;unixbench;pages;input;sqlite;tools;compute.
