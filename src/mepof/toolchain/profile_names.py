"""How compilers name functions in profiles: a static one is ``FILE;NAME``, with the file as the
compiler saw it from the objects' directory, ``../fs/namei.c``."""

from __future__ import annotations


def current(name: str) -> str:
    """A name as Clang 19 writes it: Clang 16 puts a colon between the file and the name."""
    return name.replace(":", ";")


def object_of(source: str) -> str:
    """The path of a file's object in the kernel's tree."""
    return f"{source.removeprefix('../').removesuffix('.c')}.o"
