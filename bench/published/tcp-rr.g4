# Requests and responses over TCP, trained on themselves: the kernels whose heatmaps and counters
# Xu and Shen show.

set config suites.
set core skylake.
set seed 1.
set repetitions 3.
set without stream-loopback,stream-veth.
set name thinlto.
build debian:linux-source-6.12 ThinLTO.

set name pgo.
opt debian:linux-source-6.12 pgo trav network O2.
set name pgo-thinlto.
opt debian:linux-source-6.12 pgo trav network O2;ThinLTO.
set name pgo-thinlto-propeller.
opt debian:linux-source-6.12 pgo+propeller trav network O2;ThinLTO.

set name autofdo.
opt debian:linux-source-6.12 autofdo trav network O2.
set name autofdo-flags.
recomp debian:linux-source-6.12 autofdo O2;FlagsOnly.
set name autofdo-thinlto.
opt debian:linux-source-6.12 autofdo trav network O2;ThinLTO.
set name autofdo-thinlto-propeller.
opt debian:linux-source-6.12 autofdo+propeller trav network O2;ThinLTO.

eval plain.img;thinlto;autofdo-flags;
     pgo;pgo-thinlto;pgo-thinlto-propeller;
     autofdo;autofdo-thinlto;autofdo-thinlto-propeller
     network.
