"""mepof: end-to-end profile-guided optimisation of Linux and Android kernels."""

__version__ = "0.1.0"
