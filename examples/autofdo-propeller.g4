# The same kernel with AutoFDO and then with Propeller: the AutoFDO kernel is profiled once more,
# and its basic blocks and functions are laid out by how they follow each other.

set config slim.
set seed 1.

opt debian:linux-source-6.12 autofdo rand kbench O2.
opt debian:linux-source-6.12 autofdo+propeller rand kbench O2.

# The second `opt` is named after the first.
eval plain.img;opt.img;opt2.img syscall;overhead;proc;pipe;file.
