"""Android boot images: read, describe, change and write them.

The formats are those of AOSP's ``system/tools/mkbootimg/include/bootimg/bootimg.h`` and of
https://source.android.com/docs/core/architecture/bootloader/boot-image-header; what follows an
image in its partition is that of Android Verified Boot (``external/avb``).
"""
