"""Kernels as they are installed: packages of distributions, Android boot images."""
