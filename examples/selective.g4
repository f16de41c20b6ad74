# Instrument only what is worth it: a part of the kernel, the hottest files, or what an image of a
# size has room for. What share of the text that is, and of what the kernel does, is in the report.

set config slim.
set seed 1.

# The subsystems that the app exercises most.
set instrument fs,mm,sched.
set name parts.
opt debian:linux-source-6.12 pgo rand kbench O2.

# The hottest files that make up 90 % of what runs, as far as an image of 4 MiB has room for them.
set instrument 90%,4M.
set name hottest.
opt debian:linux-source-6.12 pgo rand kbench O2.

eval plain;parts;hottest.
