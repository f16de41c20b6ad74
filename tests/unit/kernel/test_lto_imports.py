"""Functions with inline assembly that ThinLTO can import into other files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mepof.kernel import overlay
from mepof.process import run
from mepof.toolchain.named import select

#: What the kernel's headers have, as far as the overlay replaces it.
_HEADERS = {
    "export.h": r"""
#define __EXPORT_SYMBOL_REF(sym) .quad sym
#define ___EXPORT_SYMBOL(sym, license, ns) .section ".export_symbol","a" ASM_NL \
	__export_symbol_##sym: ASM_NL __EXPORT_SYMBOL_REF(sym) ASM_NL .previous
#define __EXPORT_SYMBOL(sym, license, ns) extern typeof(sym) sym; __ADDRESSABLE(sym) \
	asm(__stringify(___EXPORT_SYMBOL(sym, license, ns)))
#define EXPORT_SYMBOL(sym) __EXPORT_SYMBOL(sym, "GPL", "")
""",
    "init.h": r"""
#define __define_initcall_stub(stub, fn) \
	int stub(void); int stub(void) { return fn(); } __ADDRESSABLE(stub)
#define ____define_initcall(fn, stub, name, sec) __define_initcall_stub(stub, fn) \
	asm(".section \"" sec "\", \"a\"\n" __stringify(name) ":\n" \
	".long " __stringify(stub) " - .\n.previous\n");
#define core_initcall(fn) ____define_initcall(fn, __initstub__##fn, __initcall__##fn, ".initcall1")
#define __setup_param(str, unique_id, fn, early) \
	static const char __setup_str_##unique_id[] = str; \
	static struct obs_kernel_param __setup_##unique_id __used __section(".init.setup") = \
	{ __setup_str_##unique_id, fn, early }
#define __setup(str, fn) __setup_param(str, fn, fn, 0)
""",
    "static_call_types.h": r"""
#define STATIC_CALL_KEY(name) __SCK__##name
#define __STATIC_CALL_ADDRESSABLE(name) __ADDRESSABLE(STATIC_CALL_KEY(name))
""",
}
_DEFINITIONS = r"""
#define ___PASTE(a, b) a##b
#define __PASTE(a, b) ___PASTE(a, b)
#define __stringify_1(x...) #x
#define __stringify(x...) __stringify_1(x)
#define ASM_NL ;
#define __used __attribute__((used))
#define __weak __attribute__((weak))
#define noinline __attribute__((noinline))
#define __section(name) __attribute__((section(name)))
#define __aligned(n) __attribute__((aligned(n)))
#define __init __section(".init.text")
#define __initconst
#define static_assert _Static_assert
#define __same_type(a, b) 1
#define __ADDRESSABLE(sym) static void *__used __section(".discard.addressable") \
	__PASTE(__addressable_, __PASTE(sym, __COUNTER__)) = (void *)&sym;
#define __KBUILD_MODNAME kmod_test
#define CONFIG_LTO_CLANG 1
#define CONFIG_HAVE_ARCH_PREL32_RELOCATIONS 1
#define CONFIG_HAVE_STATIC_CALL_INLINE 1
typedef unsigned long uintptr_t;
struct obs_kernel_param { const char *str; int (*setup)(char *); int early; };
extern int __SCK__hook;
"""
_SOURCE = r"""
int wanted(int a) { asm volatile("nop"); CALL return a * 3; }
static int begin(void) { asm volatile("nop"); return 0; }
static int option(char *text) { return text[0]; }
"""
_SYMBOLS = {
    "export": "EXPORT_SYMBOL(wanted);",
    "initcall": "core_initcall(begin);",
    "parameter": '__setup("x=", option);',
    "static call": "",
}


def source_with(room: Path, symbol: str, *names: str) -> tuple[str | Path, ...]:
    """A file with such a symbol, and the flags with which it is compiled."""
    tree = room / "tree"
    (tree / "include/linux").mkdir(parents=True)
    for name, text in _HEADERS.items():
        (tree / "include/linux" / name).write_text(text)
    view = room / "view"
    overlay.compose(tree, tuple(map(overlay.load, names)), view, None)
    call = "__STATIC_CALL_ADDRESSABLE(hook)" if symbol == "static call" else ""
    headers = "".join(f"#include <linux/{name}>\n" for name in _HEADERS)
    source = room / "test.c"
    body = _SOURCE.replace("CALL", call) + _SYMBOLS[symbol] + "\n"
    source.write_text(_DEFINITIONS + headers + body)
    return "-O2", "-fno-pic", "-w", f"-I{view / 'include'}", source


def importable(room: Path, symbol: str, *names: str) -> bool:
    """Whether ThinLTO can import ``wanted`` from a file with such a symbol."""
    source = source_with(room, symbol, *names)
    listing = room / "test.ll"
    run([select("clang").tool("compiler"), *source, "-flto=thin", "-S", "-o", listing])
    (found,) = re.findall(r'name: "wanted".*?notEligibleToImport: (\d)', listing.read_text())
    return bool(found == "0")


@pytest.mark.parametrize("symbol", sorted(_SYMBOLS))
def test_a_function_beside_what_the_kernel_keeps_can_be_imported(
    tmp_path: Path, symbol: str
) -> None:
    assert not importable(tmp_path / "before", symbol)
    assert importable(tmp_path / "after", symbol, "lto-imports")


def test_a_module_keeps_the_key_of_a_static_call_that_the_kernel_has(tmp_path: Path) -> None:
    """Without it, objtool takes the call to have no exported key, and the module does not load."""
    source = source_with(tmp_path, "static call", "lto-imports")
    file = tmp_path / "test.o"
    run([select("clang").tool("compiler"), *source, "-DMODULE", "-c", "-o", file])
    assert "__SCK__hook" in run([select("clang").tool("nm"), "-u", file]).output


def test_a_kernel_without_lto_is_not_edited(tmp_path: Path) -> None:
    (tmp_path / "include/linux").mkdir(parents=True)
    (tmp_path / "include/linux/init.h").write_text("#define core_initcall(fn)\n")
    assert not overlay.load("lto-imports").is_for(tmp_path)
