# A kernel for servers: containers, BPF, file systems, with the default configuration of x86-64 below.

set config server.
set seed 1.

set name pgo.
opt debian:linux-source-6.12 pgo rand kbench O2.

set name autofdo.
opt debian:linux-source-6.12 autofdo rand kbench O2.

set repetitions 5.
set core skylake.
eval plain.img;pgo.img;autofdo.img syscall;overhead;proc;pipe;file.
