# What the option NoPGSO does for work that the training did not run: the training of
# examples/suites.g4, and the suites in which that kernel loses or gains little.

set config suites.
set seed 1.
set repetitions 3.

set name trained.
opt debian:linux-source-6.12 pgo rand kbench O2.

set name opt.
recomp debian:linux-source-6.12 trained O2;NoPGSO.

eval plain.img;opt.img syscall;overhead;proc;pipe;file;network;pages;sqlite;tools;binder.
