# Optimise Debian's Linux 6.12 with a profile of its own, and measure what that brings.
# Build, boot, check and compare it all with: mepof run examples/quickstart.g4 --out out/demo

set config slim.  # a small kernel for QEMU, with the hardening of a distribution's
set seed 1.  # the same seed gives the same actions, boots and counts

# An instrumented build does random work of the app kbench; its profile goes into a second build.
opt debian:linux-source-6.12 pgo rand kbench O2.

# The first image is the baseline. Without a list of metrics, all five would be measured as well.
eval plain.img;opt.img syscall;overhead;proc;pipe;file.
