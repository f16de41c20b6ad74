"""A linker script that shuffles the objects' code, for GNU ld, which has no ``--shuffle-sections``.

It names objects by the last two letters of their names, so one script fits every kernel, and
inserts their code behind ``.text`` of the kernel's own script, which gets what it leaves. Hot and
unlikely code stay apart from the rest, as in ``TEXT_TEXT`` (include/asm-generic/vmlinux.lds.h).
"""

from __future__ import annotations

from itertools import product
from random import Random
from string import ascii_lowercase, digits

_CLASSES = (".text.hot .text.hot.*", ".text", ".text.unlikely .text.unlikely.*")
_LETTERS = f"{ascii_lowercase}{digits}-_"


def script(seed: int) -> str:
    """The script of a seed (ld's manual, "INSERT").

    It comes before the kernel's own: an input section goes to the first that names it.
    """
    random = Random(seed)
    ends = ["".join(pair) for pair in product(_LETTERS, repeat=2)]
    lines = []
    for sections in _CLASSES:
        random.shuffle(ends)
        lines += [f"\t\t*{end}.o({sections})\n" for end in ends]
    return f"SECTIONS\n{{\n\t.text.shuffled : {{\n{''.join(lines)}\t}}\n}}\nINSERT AFTER .text;\n"
