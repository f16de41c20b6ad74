# A loop of three releases: each is profiled while it runs with the profile of the one before, and
# that profile counts half as much as what was recorded now. Name your releases in place of the
# same kernel three times, such as ./linux-6.12.118.tar.xz. This builds seven kernels.

set config slim.
set seed 1.
set decay 0.5.

set name release-1.
opt debian:linux-source-6.12 autofdo rand kbench O2.

# What runs changes from release to release; so here does the order of the actions.
set seed 2.
set base release-1.
set name release-2.
opt debian:linux-source-6.12 autofdo rand kbench O2.

set seed 3.
set base release-2.
set name release-3.
opt debian:linux-source-6.12 autofdo rand kbench O2.

# `set rounds 3.` does the same on one release, with an image after the last round only.
eval plain.img;release-1.img;release-2.img;release-3.img syscall;overhead;proc;pipe;file.
