# examples/modules.g4 by AutoFDO: the branches in modules are recorded, too.

set config modules.
set seed 1.

opt debian:linux-source-6.12 autofdo rand sqlite;network O2.

eval plain.img;opt.img sqlite;network.
