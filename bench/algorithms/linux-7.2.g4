# A kernel with AutoFDO and Propeller of its own makefiles.

set config slim.
set seed 1.

set name autofdo.
opt debian:linux-source-7.2 autofdo rand kbench O2.

set name autofdo-propeller.
opt debian:linux-source-7.2 autofdo+propeller rand kbench O2.

set repetitions 5.
set core skylake.
eval plain.img;autofdo.img;autofdo-propeller.img syscall;overhead;proc;pipe;file.
