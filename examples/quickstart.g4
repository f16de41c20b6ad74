# Optimise Debian's Linux 6.12 with its own profile, and measure the result.
# Build, boot, check and compare with: mepof run examples/quickstart.g4 --out out/demo

set config slim.  # a small kernel for QEMU, with most of the hardening that distributions ship
set seed 1.  # the same seed gives the same actions, boots and counts

# An instrumented build runs random actions of the app kbench; its profile goes into a second build.
opt debian:linux-source-6.12 pgo rand kbench O2.

# The first image is the baseline. Without a list of metrics, the same five are measured.
eval plain.img;opt.img syscall;overhead;proc;pipe;file.
