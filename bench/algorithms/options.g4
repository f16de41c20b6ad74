# What an optimisation level and a kind of LTO gain alone, and with a profile on top.

set config slim.
set seed 1.

set name O3.
build debian:linux-source-6.12 O3.
set name Os.
build debian:linux-source-6.12 Os.
set name ThinLTO.
build debian:linux-source-6.12 ThinLTO.
set name FullLTO.
build debian:linux-source-6.12 FullLTO.

set name pgo.
opt debian:linux-source-6.12 pgo rand kbench O2.
set name pgo-O3.
recomp debian:linux-source-6.12 pgo O3.
set name pgo-ThinLTO.
recomp debian:linux-source-6.12 pgo O2;ThinLTO.
set name pgo-FullLTO.
recomp debian:linux-source-6.12 pgo O2;FullLTO.
# At -Os, Clang inlines nothing before it counts: the control flow is another, and so the profile.
set name pgo-Os.
opt debian:linux-source-6.12 pgo rand kbench Os.

set name cspgo.
opt debian:linux-source-6.12 cspgo rand kbench O2.

set name autofdo.
opt debian:linux-source-6.12 autofdo rand kbench O2.
set name autofdo-O3.
recomp debian:linux-source-6.12 autofdo O3.
set name autofdo-Os.
recomp debian:linux-source-6.12 autofdo Os.
set name autofdo-ThinLTO.
recomp debian:linux-source-6.12 autofdo O2;ThinLTO.
set name autofdo-FullLTO.
recomp debian:linux-source-6.12 autofdo O2;FullLTO.

set repetitions 5.
set core skylake.
eval plain.img;O3.img;Os.img;ThinLTO.img;FullLTO.img;
     pgo.img;pgo-O3.img;pgo-Os.img;pgo-ThinLTO.img;pgo-FullLTO.img;cspgo.img;
     autofdo.img;autofdo-O3.img;autofdo-Os.img;autofdo-ThinLTO.img;autofdo-FullLTO.img
     syscall;overhead;proc;pipe;file.
