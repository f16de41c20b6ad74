# A profile outlives its kernel: branches recorded on one release optimise the next, and the compiler
# matches them function by function. The report says what share still fits.
#
# The packages linux-source-7.2 and linux-source-7.3 are in Debian's later suites. Where
# `apt-get install` does not find them, name any two releases instead: unpacked trees or tarballs of
# kernel.org by their paths, such as ./linux-7.2.12.tar.xz.

set config slim.
set seed 1.

set name old.
opt debian:linux-source-7.2 autofdo rand kbench O2.

set name new.
recomp debian:linux-source-7.3 old.afdo O2.

eval plain.img;new.img syscall;overhead;proc;pipe;file.
