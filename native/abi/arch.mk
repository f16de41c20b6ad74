# Flags for the architecture that GUEST_CC compiles for. ABI is the path to this directory.
MACHINE := $(shell $(GUEST_CC) -dumpmachine)
ARCH := $(firstword $(subst -, ,$(MACHINE)))
ABI_HEADERS := $(wildcard $(ABI)/*.h $(ABI)/$(ARCH)/*.h)
ABI_FLAGS := -I$(ABI) -I$(ABI)/$(ARCH)

ifeq ($(wildcard $(ABI)/$(ARCH)),)
$(error there is no native/abi/$(ARCH) for what $(GUEST_CC) compiles for: see docs/porting.md)
endif
