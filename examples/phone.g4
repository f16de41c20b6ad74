# Train a kernel on the apps of a phone, measure and flash it: `mepof run --flash examples/phone.g4`.
# Without --flash the program is refused. docs/devices/phone.md says how a phone is listed and what
# is at risk; docs/virtual-phone.md, how to try this without one:
#
#   mepof phone phone/ --kernel plain.img &
#   fastboot -s tcp:127.0.0.1:5554 flashing unlock

# A virtual phone with an x86-64 processor; a real one needs `set arch arm64.` and its own
# configuration and source.
set config slim.
set device phone.
set seed 1.

# Two apps are driven in three ways, each in a boot from memory of the same instrumented kernel.
set name rand.
profile debian:linux-source-6.12 pgo rand ./examples/phone-apps/apps.toml.
set name trav.
profile debian:linux-source-6.12 pgo trav ./examples/phone-apps/apps.toml.
set name learned.
profile debian:linux-source-6.12 pgo learned ./examples/phone-apps/apps.toml.

set name together.
merge rand;trav;learned.
set name opt.
recomp debian:linux-source-6.12 together O2.

# A phone does not count; the emulator does.
set device qemu.
eval plain.img;opt.img syscall;proc;pipe;file.

# Once it passes its self-check from memory, it is flashed to the slot that is not active.
set device phone.
flash opt.img.
