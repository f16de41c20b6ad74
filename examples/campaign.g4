# A campaign on a phone: every app of a list is launched and crawled for three minutes, as Android's
# own kernel profiles are made. docs/android.md says what a list has, docs/devices/phone.md how a
# phone is listed. Nothing is written to the phone: kernels are booted from memory.

# Name your phone's source and configuration in place of these (docs/sources.md, docs/configs.md).
set arch arm64.
set config slim+android.
set device phone.
set seed 1.

# Depth first in the first half of the campaign; then what is seen least, in other orders.
set name crawled.
profile debian:linux-source-6.12 pgo trav ./examples/phone-apps/top-apps.toml.
set name explored.
profile debian:linux-source-6.12 pgo learned ./examples/phone-apps/top-apps.toml.
set name campaign.
merge crawled;explored.
