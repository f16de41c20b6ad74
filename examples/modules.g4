# A kernel whose file system, block device and network cable are modules: ext4, null_blk and veth
# are instrumented, trained, built with the profile and loaded like the rest of the kernel.

set config modules.  # what the suites need, with these drivers as modules
set seed 1.

opt debian:linux-source-6.12 pgo rand sqlite;network O2.

eval plain.img;opt.img sqlite;network.
