# Train and optimise a kernel on a phone, and flash it: `mepof run --flash examples/phone.g4`.
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

# kbench and general are trained on the phone, from memory.
opt debian:linux-source-6.12 pgo rand kbench;general O2.

# Once it passes its self-check from memory, it is flashed to the slot that is not active.
flash opt.img.
