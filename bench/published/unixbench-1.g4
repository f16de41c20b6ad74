# Loads like UnixBench's, one copy of each, trained on themselves.

set config suites.
set core skylake.
set seed 1.
set repetitions 3.
set without unixbench-n.

set name pgo.
opt debian:linux-source-6.12 pgo trav unixbench O2.
set name autofdo.
opt debian:linux-source-6.12 autofdo trav unixbench O2.
set name autofdo-flags.
recomp debian:linux-source-6.12 autofdo O2;FlagsOnly.

eval plain.img;autofdo-flags;pgo;autofdo unixbench.
