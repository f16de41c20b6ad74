# AutoFDO, and then Propeller on top: the AutoFDO kernel is profiled again, and its basic blocks and
# functions are laid out in the order in which they ran.

set config slim.
set seed 1.

opt debian:linux-source-6.12 autofdo rand kbench O2.
opt debian:linux-source-6.12 autofdo+propeller rand kbench O2.

# The second `opt` makes `opt2`.
eval plain.img;opt.img;opt2.img syscall;overhead;proc;pipe;file.
