# Loads like UnixBench's, four copies of each on four processors, trained on themselves.

set config suites.
set core skylake.
set seed 1.
set repetitions 3.
set cpus 4.
set without syscall-1,pipe-1,context-1,spawn-1,execl-1,copy-256-1,copy-1024-1,copy-4096-1,shell-1,dhry-1,whet-1.

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
     unixbench-n.
