# MEPOF's five metrics, Fig. 4a: a profile of what a person does against one of random actions.

set config slim.
set core skylake.
set seed 1.
set repetitions 5.

set name manual.
opt debian:linux-source-6.12 pgo script kbench:bench/published/person.txt O2.
set name random.
opt debian:linux-source-6.12 pgo rand kbench O2.

eval plain.img;manual.img;random.img syscall;overhead;proc;pipe;file.
