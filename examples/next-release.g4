# A profile outlives its kernel: what was recorded on one release optimises the next, which the
# compiler matches with it function by function. The report says how much still fits.

set config slim.
set seed 1.

set name old.
opt debian:linux-source-7.2 autofdo rand kbench O2.

set name new.
recomp debian:linux-source-7.3 old.afdo O2.

eval plain.img;new.img syscall;overhead;proc;pipe;file.
