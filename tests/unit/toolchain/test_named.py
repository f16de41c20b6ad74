"""What toolchains are called elsewhere."""

from __future__ import annotations

import pytest

from mepof.errors import InputError
from mepof.g4 import Source, check, parse
from mepof.g4.vocabulary import vocabulary
from mepof.toolchain.named import select


@pytest.mark.parametrize(
    ("word", "here"),
    [
        ("-19", "clang-19"),
        ("LLVM=-19", "clang-19"),
        ("LLVM=1", "clang"),
        ("llvm-19", "clang-19"),
        ("clang++", "clang"),
        ("clang19", "clang-19"),
        ("aarch64-linux-gnu-gcc", "gcc"),
        ("aarch64-linux-gnu-gcc-13", "gcc-13"),
        ("gcc-13-aarch64-linux-gnu", "gcc-13"),
        ("arm-linux-gnueabihf-", "gcc"),
    ],
)
def test_what_make_packages_and_compilers_call_it_is_told_apart(word: str, here: str) -> None:
    with pytest.raises(InputError, match="unknown toolchain") as caught:
        select(word)
    assert caught.value.remedy == f"did you mean `{here}`?"
    if "=" not in word:
        program = parse(Source("p.g4", f'set toolchain "{word}".\n')).program
        (diagnostic,) = check(program, vocabulary())
        assert diagnostic.help == f"did you mean `{here}`?"
