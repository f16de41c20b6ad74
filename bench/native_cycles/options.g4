# What options gain natively, without a profile and with one of the load that is timed.

set arch um.
set device uml.
set config kload.
set seed 1.

build debian:linux-source-6.12 O2.
set name o3.
build debian:linux-source-6.12 O3.
set name os.
build debian:linux-source-6.12 Os.
set name thinlto.
build debian:linux-source-6.12 ThinLTO.

set name own.
opt debian:linux-source-6.12 pgo trav kload O2.
set name own-o3.
opt debian:linux-source-6.12 pgo trav kload O3.
set name own-os.
opt debian:linux-source-6.12 pgo trav kload Os.
set name own-thinlto.
recomp debian:linux-source-6.12 own O2;ThinLTO.
set name own-nopgso.
recomp debian:linux-source-6.12 own O2;NoPGSO.
