"""The functions that C source of a kernel defines, by the names that profiles have for them.

This reads the kernel's own style, not all of C: a function ends at the brace in the first column.
What macros expand to is not seen, except the functions that a macro such as ``SYSCALL_DEFINE3``
declares in its own name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_STRING = r'"(?:\\.|[^"\\\n])*"' + r"|'(?:\\.|[^'\\\n])*'"
_COMMENT = re.compile(rf"/\*.*?\*/|//[^\n]*|({_STRING})", re.S)
_DIRECTIVE = r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*"
_TOKEN = re.compile(rf"{_STRING}|{_DIRECTIVE}|[{{}};]", re.M)
_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_MACRO = re.compile(r"[A-Z][A-Z0-9_]*$")
# Attributes that take arguments, before or after the name of a function.
_ATTRIBUTE = re.compile(
    r"__(?:attribute__|printf|scanf|section|aligned|alloc_size|acquires|releases|must_hold"
    r"|cond_acquires|cond_lock|assume_aligned|realloc_size|diagnose_as|no_sanitize|malloc)$"
    r"|(?:alignas|__aligned|typeof|__typeof__|noinline_for_stack)$"
)
_QUALIFIER = re.compile(r"(?:static|extern|inline|asmlinkage|notrace|noinstr|noinline|_\w+)$")
_SYSCALL = re.compile(r"(COMPAT_)?SYSCALL(?:32)?_DEFINE\d")
# The functions that a system call becomes (include/linux/syscalls.h,
# arch/*/include/asm/syscall_wrapper.h).
_WRAPPERS = ("__do_", "__se_", "__x64_", "__ia32_", "__arm64_")
_WRAPPER = re.compile(rf"(?:{'|'.join(_WRAPPERS)})((?:compat_)?sys_\w+)$")
# What macros put before the name of a function that they declare.
_MAX_UNDERSCORES = 4
# What compilers append to the name of a copy of a function, or of a part of it.
_COPY = re.compile(
    r"\.(?:llvm|__uniq|constprop|isra|part|cold|warm|lto_priv|cfi_jt|specialized|resume|memprof|\d)"
    r"[.\w]*$"
)


def definitions(text: str) -> dict[str, str]:
    """The code of each function of a C file, without comments and layout, by its name.

    A function that is defined more than once, under several conditions, has all of its code. A
    system call ``read`` is called ``sys_read``.
    """
    found: dict[str, str] = {}
    for head, whole in _bodies(_COMMENT.sub(lambda m: m[1] or " ", text)):
        if (name := _name(head)) is not None:
            code = " ".join(whole.split())
            found[name] = f"{found[name]}\n{code}" if name in found else code
    return found


def source_name(symbol: str) -> str:
    """The name that a symbol's function has in the source, as in :func:`definitions`."""
    name = _COPY.sub("", symbol)
    wrapper = _WRAPPER.match(name)
    return wrapper[1] if wrapper else name


def symbol_names(name: str) -> Iterator[str]:
    """The names that symbols may have of a function that the source calls ``name``."""
    for count in range(_MAX_UNDERSCORES + 1):
        yield "_" * count + name
    if name.startswith(("sys_", "compat_sys_")):
        for wrapper in _WRAPPERS:
            yield wrapper + name


def _bodies(text: str) -> Iterator[tuple[str, str]]:
    """What stands before each outermost pair of braces, and both."""
    start = depth = opened = 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == "{":
            if depth == 0:
                opened = token.start()
            depth += 1
        elif mark == "}" and depth:
            # In the first column it ends the function, however many braces #if … #else opened.
            ends = text[token.start() - 1] == "\n" or depth == 1
            depth = 0 if ends else depth - 1
            if ends:
                yield text[start:opened], text[start : token.end()]
                start = token.end()
        elif depth == 0 and mark not in "}" and mark[0] not in "\"'":
            start = token.end()


def _name(head: str) -> str | None:
    """The function that a head declares; None if it is not one of a function."""
    if re.search(r"(?<![=!<>])=(?!=)", re.sub(r"\([^()]*\)", "", head)):
        return None  # an initialiser
    for call in _CALL.finditer(head):
        name = call[1]
        if head[: call.start()].count("(") != head[: call.start()].count(")"):
            continue
        if _ATTRIBUTE.match(name):
            continue
        before = head[: call.start()].split()
        if not _MACRO.match(name) or any(not _QUALIFIER.match(word) for word in before):
            return name  # with a type before it, it is a function of that name: INIT_LIST_HEAD
        argument = re.match(r"\s*(\w+)", head[call.end() :])
        if argument is None:
            return None
        if syscall := _SYSCALL.match(name):
            return f"{'compat_' if syscall[1] else ''}sys_{argument[1]}"
        return argument[1]
    return None
