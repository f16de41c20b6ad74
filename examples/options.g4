# What an optimisation level gains on its own, and what a profile adds to it: Debian's Linux 6.12 at
# -O2, -Os and -O3, each without a profile and with its own. This builds nine kernels.

set config slim.
set seed 1.

set name o2.
build debian:linux-source-6.12 O2.
set name os.
build debian:linux-source-6.12 Os.
set name o3.
build debian:linux-source-6.12 O3.

set name o2-pgo.
opt debian:linux-source-6.12 pgo rand kbench O2.
set name os-pgo.
opt debian:linux-source-6.12 pgo rand kbench Os.
set name o3-pgo.
opt debian:linux-source-6.12 pgo rand kbench O3.

# The first image is the baseline.
eval o2;os;o3;o2-pgo;os-pgo;o3-pgo syscall;overhead;proc;pipe;file.
