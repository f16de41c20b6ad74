# Debian's own kernel for the cloud: its source, configuration and modules, by Clang.

set config ./out/algorithms/cloud.config.
set seed 1.

set name autofdo.
opt debian:linux-source-6.12 autofdo rand kbench O2.

set repetitions 2.
eval plain.img;autofdo.img syscall;overhead;proc;pipe;file.
