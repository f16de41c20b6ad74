# Every suite on a kernel that was trained on the suites themselves, with all that helps: AutoFDO,
# Propeller and ThinLTO. The control, compute, is not trained.

set config suites.
set seed 1.
set repetitions 3.

set name ThinLTO.
build debian:linux-source-6.12 ThinLTO.

opt debian:linux-source-6.12 autofdo+propeller
    trav mepof;threads;ipc;binder;network;unixbench;pages;input;sqlite;tools O2;ThinLTO.

eval plain.img;opt.img;ThinLTO.img
     syscall;overhead;proc;pipe;file;
     threads;ipc;binder;network;unixbench;pages;input;sqlite;tools;compute.
