"""A virtual phone: a boot loader that the real ``fastboot`` talks to, for tests and learners.

What it answers, and how it fails, is after Qualcomm's boot loader (edk2, QcomModulePkg,
``FastbootCmds.c``); the transports are after AOSP's ``system/core/fastboot/README.md``.
"""
