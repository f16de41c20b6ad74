# Loads like UnixBench's, one copy of each, trained on themselves.

set config suites.
set core skylake.
set seed 1.
set repetitions 3.
set without unixbench-n.

set name thinlto.
build debian:linux-source-6.12 ThinLTO.

set name pgo.
opt debian:linux-source-6.12 pgo trav unixbench O2.
set name pgo-thinlto.
opt debian:linux-source-6.12 pgo trav unixbench O2;ThinLTO.
set name pgo-thinlto-propeller.
opt debian:linux-source-6.12 pgo+propeller trav unixbench O2;ThinLTO.

set name autofdo.
opt debian:linux-source-6.12 autofdo trav unixbench O2.
set name autofdo-flags.
recomp debian:linux-source-6.12 autofdo O2;FlagsOnly.
set name autofdo-thinlto.
opt debian:linux-source-6.12 autofdo trav unixbench O2;ThinLTO.
set name autofdo-thinlto-propeller.
opt debian:linux-source-6.12 autofdo+propeller trav unixbench O2;ThinLTO.

eval plain.img;thinlto;autofdo-flags;
     pgo;pgo-thinlto;pgo-thinlto-propeller;
     autofdo;autofdo-thinlto;autofdo-thinlto-propeller
     unixbench.
