# What the option NoPGSO does on arm64 with sample profiles, where all that was not sampled is cold:
# the training of bench/suites/arm64.g4, and the suites in which that kernel loses or gains little.

set arch arm64.
set config suites.
set seed 1.
set repetitions 3.

set name trained.
opt debian:linux-source-6.12 autofdo rand kbench O2.

set name opt.
recomp debian:linux-source-6.12 trained O2;NoPGSO.

eval plain.img;opt.img syscall;overhead;proc;pipe;file;network;pages;sqlite;binder;threads.
