# What an option gains alone and with a profile, normalised to -O2, trained on the measured work:
# threads, binder and SQLite.

set config suites.
set core skylake.
set seed 1.
set repetitions 3.

set name os.
build debian:linux-source-6.12 Os.
set name o3.
build debian:linux-source-6.12 O3.
set name thinlto.
build debian:linux-source-6.12 ThinLTO.

set name pgo.
opt debian:linux-source-6.12 pgo trav threads;binder;sqlite O2.
set name pgo-os.
opt debian:linux-source-6.12 pgo trav threads;binder;sqlite Os.
set name pgo-o3.
opt debian:linux-source-6.12 pgo trav threads;binder;sqlite O3.
set name pgo-thinlto.
opt debian:linux-source-6.12 pgo trav threads;binder;sqlite O2;ThinLTO.
set name autofdo.
opt debian:linux-source-6.12 autofdo trav threads;binder;sqlite O2.
set name autofdo-flags.
recomp debian:linux-source-6.12 autofdo O2;FlagsOnly.
set name autofdo-thinlto.
opt debian:linux-source-6.12 autofdo trav threads;binder;sqlite O2;ThinLTO.

eval plain.img;os;o3;thinlto;autofdo-flags;pgo;pgo-os;pgo-o3;pgo-thinlto;autofdo;autofdo-thinlto
     threads;binder;sqlite.
