# AutoFDO, timed natively beside `pgo`: its branches are recorded in an emulated kernel for x86-64,
# since nothing records those of a process of the host. The lines are of the same source.

set config kload.
set seed 1.

set name emulated.
profile debian:linux-source-6.12 autofdo trav kload.

set arch um.
set device uml.
build debian:linux-source-6.12 O2.
set name own.
opt debian:linux-source-6.12 pgo trav kload O2.
set name sampled.
recomp debian:linux-source-6.12 emulated O2.
