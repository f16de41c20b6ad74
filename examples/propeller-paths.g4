# Copies of blocks along hot paths, against the layout without them: both on AutoFDO's profile.

set config slim.
set seed 1.

set name layout.
opt debian:linux-source-6.12 autofdo+propeller rand kbench O2.

set name paths.
opt debian:linux-source-6.12 autofdo+propeller-paths rand kbench O2.

eval plain.img;layout.img;paths.img syscall;overhead;proc;pipe;file.
