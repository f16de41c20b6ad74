# Kernels that run natively: without a profile, with one of the load that is timed, and with one of
# something else.

set arch um.
set device uml.
set config kload.
set seed 1.

build debian:linux-source-6.12 O2.
set name own.
opt debian:linux-source-6.12 pgo trav kload O2.
set name other.
opt debian:linux-source-6.12 pgo trav kbench O2.
