# AutoFDO, and then LLVM's BOLT on top: the AutoFDO kernel is profiled again, and the blocks of its
# functions are laid out again in the finished kernel, without compiling it again.

set config slim.
set seed 1.

opt debian:linux-source-6.12 autofdo rand kbench O2.
opt debian:linux-source-6.12 autofdo+bolt rand kbench O2.

# The second `opt` makes `opt2`.
eval plain.img;opt.img;opt2.img syscall;overhead;proc;pipe;file.
