# Check that an optimised kernel passes the kernel's own tests that the plain one passes.
# Once the kernels are built, it takes about ten minutes for each image on two cores.

set config slim.
set seed 1.
set test-boots 2.  # of each image: tests that vary from boot to boot do not count

opt debian:linux-source-6.12 pgo rand kbench O2.

# What plain passes, opt must pass; the run exits with status 1 otherwise. Add `kunit` for the
# tests inside of the kernel, for which both are built again.
check plain.img;opt.img kselftest.
