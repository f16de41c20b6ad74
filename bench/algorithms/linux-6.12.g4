# Every algorithm on the same kernel, trained by the same work and measured on the same cases.

set config slim.
set seed 1.

set name pgo.
opt debian:linux-source-6.12 pgo rand kbench O2.

set name autofdo.
opt debian:linux-source-6.12 autofdo rand kbench O2.

set name autofdo-propeller.
opt debian:linux-source-6.12 autofdo+propeller rand kbench O2.

set name pgo-propeller.
opt debian:linux-source-6.12 pgo+propeller rand kbench O2.

set name propeller.
opt debian:linux-source-6.12 propeller rand kbench O2.

set name autofdo-propeller-ThinLTO.
opt debian:linux-source-6.12 autofdo+propeller rand kbench O2;ThinLTO.

set name autofdo-ThinLTO.
recomp debian:linux-source-6.12 autofdo O2;ThinLTO.

# What the options and the flags beside the profiles do alone.
set name ThinLTO.
build debian:linux-source-6.12 ThinLTO.

set name autofdo-flags.
recomp debian:linux-source-6.12 autofdo O2;FlagsOnly.

set name propeller-flags.
recomp debian:linux-source-6.12 propeller O2;FlagsOnly.

set name autofdo-probe.
opt debian:linux-source-6.12 autofdo-probe rand kbench O2.

# One branch stack of 32 for every 10,007 taken branches, as hardware would sample them.
set period 10007.
set name autofdo-sampled.
opt debian:linux-source-6.12 autofdo rand kbench O2.

set repetitions 5.
set core skylake.
eval plain.img;pgo.img;propeller.img;autofdo.img;autofdo-sampled.img;autofdo-probe.img;
     autofdo-ThinLTO.img;autofdo-propeller.img;pgo-propeller.img;autofdo-propeller-ThinLTO.img;
     ThinLTO.img;autofdo-flags.img;propeller-flags.img
     syscall;overhead;proc;pipe;file.
