# Train a kernel without a workload of your own: general does what programs ask of kernels
# everywhere (docs/general.md). None of its work is in the suites, so all that is measured here is
# untrained.

set config slim.
set seed 1.

# Every action once: each has about the same weight.
opt debian:linux-source-6.12 pgo trav general O2.

eval plain.img;opt.img syscall;overhead;proc;pipe;file;threads.
