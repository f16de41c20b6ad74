# Samples that are attributed by pseudo probes, against those by lines.

set config slim.
set seed 1.

set name lines.
opt debian:linux-source-6.12 autofdo rand kbench O2.

set name probes.
opt debian:linux-source-6.12 autofdo-probe rand kbench O2.

eval plain.img;lines.img;probes.img syscall;overhead;proc;pipe;file.
