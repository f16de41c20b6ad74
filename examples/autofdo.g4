# Optimise Debian's Linux 6.12 with Clang's AutoFDO: the kernel that is profiled is an optimised
# one, and the emulator records every branch that it takes.

set config slim.
set seed 1.

# By default every branch is counted. `set period 10007.` samples them as hardware would;
# `set perf-data FILE.` takes branches that a real machine recorded on the profiled kernel.
opt debian:linux-source-6.12 autofdo rand kbench O2.

eval plain.img;opt.img syscall;overhead;proc;pipe;file.
