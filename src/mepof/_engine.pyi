"""The profile engine: the compiled part of mepof (Rust, in ``crates/``)."""

__version__: str
"""The version that was compiled; an older one than ``mepof.__version__`` wants `make setup`."""
