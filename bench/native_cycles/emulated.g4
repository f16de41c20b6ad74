# The load of bench/native_cycles/pgo.g4 on x86-64, counted, and modelled on the core of the machine
# that the published native cycles are of.

set config kload.
set seed 1.
set repetitions 3.

set name own.
opt debian:linux-source-6.12 pgo trav kload O2.
set name other.
opt debian:linux-source-6.12 pgo trav kbench O2.

set core zen4.
eval plain.img;own.img;other.img kload.
