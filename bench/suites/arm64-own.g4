# bench/suites/own.g4 for arm64: recorded and measured on an emulated Arm.

set arch arm64.
set config suites+./bench/suites/no-bti.config.
set seed 1.
set repetitions 3.

set name ThinLTO.
build debian:linux-source-6.12 ThinLTO.

opt debian:linux-source-6.12 autofdo+propeller
    trav mepof;threads;ipc;binder;network;unixbench;pages;input;sqlite;tools O2;ThinLTO.

# In kernel instructions: of every suite, that of mepof, which has several groups, among all cases.
# ThinLTO, for comparison, has no profile and misses them.
goal geomean 10.
goal geomean:threads 10.
goal geomean:ipc 10.
goal geomean:binder 10.
goal geomean:network 10.
goal geomean:unixbench 10.
goal geomean:pages 10.
goal geomean:input 10.
goal geomean:sqlite 10.
goal geomean:tools 10.

eval plain.img;opt.img;ThinLTO.img
     syscall;overhead;proc;pipe;file;
     threads;ipc;binder;network;unixbench;pages;input;sqlite;tools;compute.
