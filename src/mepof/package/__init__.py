"""Kernels as they are installed: Debian packages, Android boot images."""
