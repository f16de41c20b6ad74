# Optimise Debian's Linux 6.12 with Clang's AutoFDO: the kernel that is profiled is an optimised
# one, and every branch that it takes is recorded by the emulator.

set config slim.
set seed 1.

# Without `set period`, every branch is counted. `set period 10007.` samples them as hardware
# would; `set perf-data FILE.` takes a recording of a real machine that ran the profiled kernel.
opt debian:linux-source-6.12 autofdo rand kbench O2.

eval plain.img;opt.img syscall;overhead;proc;pipe;file.
