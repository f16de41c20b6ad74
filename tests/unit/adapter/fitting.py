"""A small tree that takes every edit of the overlays, and a compiler for it."""

from __future__ import annotations

from pathlib import Path

from mepof.toolchain.clang import Clang

# What the overlays edit, in as few lines as it takes.
TREE = {
    "Kbuild": "",
    "Makefile": "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 7\n",
    "scripts/Makefile.lib": "_c_flags = -g\n",
    "scripts/kconfig/Makefile": "simple-targets := allnoconfig\n",
    "scripts/min-tool-version.sh": '#!/bin/sh\n[ "$1" = llvm ] && echo 13.0.1\n',
    "scripts/module.lds.S": "SECTIONS {\n}\n",
    "kernel/Makefile": "obj-y = fork.o\n",
    "kernel/module/main.c": "static int find_module_sections(int a)\n{\n\treturn a;\n}\n",
    "include/asm-generic/vmlinux.lds.h": (
        "#define DATA_DATA \\\n\t*(.data)\n\n#define TEXT_TEXT \\\n\t*(.text)\n\n"
        "#define SOFTIRQENTRY_TEXT \\\n\t*(.softirqentry.text)\n\n"
        "#define ELF_DETAILS \\\n\t.comment 0\n\n"
    ),
    "tools/objtool/check.c": 'static const char *uaccess_safe_builtin[] = {\n\t"f",\n};\n',
    "tools/objtool/elf.c": "static void elf_add_symbol(struct symbol *sym)\n{\n}\n",
    "arch/x86/Makefile": "",
}


class Present(Clang):
    """Clang of a version that need not be installed."""

    resources = Path()

    def version_for(self, arch: object) -> str:
        return "22.1.8"

    def resource_directory(self) -> Path:
        return self.resources
