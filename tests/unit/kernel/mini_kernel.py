"""A kernel tree and a toolchain in miniature: kbuild's interface, in a tenth of a second.

The tree has what mepof touches of a real one: configuration targets that drop unmet options
without a word (by kconfiglib), ``O=``, kbuild's progress lines, ``scripts/Makefile.lib``
with per-file flags, and a ``vmlinux`` to check. Failures are injected by its files:

- a source with the word ``BROKEN`` does not compile, and with ``BROKEN`` in ``prepare.txt``
  the target ``prepare`` fails;
- ``vmlinux.elf`` is what the link makes;
- where the environment names a fifo in ``MINI_BLOCK``, ``kernel/b.c`` compiles until killed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from writers.elf import CODE, Section, elf64

VERSION = "22.1.8"
SUFFIX = "-22"
BOUNDS = {"_stext": 0x1000, "_etext": 0x5000, "__init_begin": 0x8000, "__init_end": 0xA000}
SOUND: tuple[Section, ...] = ((".text", 0x1000, 0x4000, CODE), (".init.text", 0x8000, 0x100, CODE))

KCONFIG = """
mainmenu "Mini"
config NET
	bool "Networking"
config INET
	bool "TCP/IP"
	depends on NET
config LOCALVERSION
	string "Local version"
config NAPI
	bool
choice
	prompt "Optimise"
	default CC_OPTIMIZE_FOR_PERFORMANCE
config CC_OPTIMIZE_FOR_PERFORMANCE
	bool "speed"
config CC_OPTIMIZE_FOR_SIZE
	bool "size"
endchoice
config CORE
	bool "Core" if EXPERT
	default y
config EXPERT
	bool "Expert"
config CRYPTO
	bool "Crypto"
config TLS
	bool "TLS"
	select CRYPTO
"""

_MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 12
SUBLEVEL = 7

ifneq ($(words $(subst :, ,$(O))),1)
$(error source directory cannot contain spaces or colons)
endif
srctree := $(CURDIR)
objects := init/a.o kernel/b.o kernel/bounds.o
obj = $(patsubst $(O)/%/,%,$(dir $@))
target-stem = $(basename $(notdir $@))
include scripts/Makefile.lib

allnoconfig olddefconfig:
	@mkdir -p $(O)
	@srctree=. KCONFIG_CONFIG=$(O)/.config @PYTHON@ -m $@ >/dev/null 2>&1
defconfig:
	@mkdir -p $(O)
	@cp arch/x86/defconfig $(O)/.config
prepare:
	@! grep BROKEN prepare.txt
vmlinux: $(addprefix $(O)/,$(objects))
	@echo '  LD      vmlinux'
	@cp vmlinux.elf $(O)/vmlinux
	@echo '0000000000001000 T _stext' > $(O)/System.map
bzImage: vmlinux $(O)/arch/x86/boot/c.o
	@cat $(O)/vmlinux $(addprefix $(O)/,$(objects)) > $(O)/arch/x86/boot/bzImage
$(O)/%.o: %.c
	@mkdir -p $(@D)
	@echo '  CC      $*.o'
	@$(CC) $(KCFLAGS) $(_c_flags) -c -o $@ $<
	@touch $(@D)/built-in.a
.PHONY: allnoconfig olddefconfig defconfig prepare vmlinux bzImage
"""

# The compiled file is the command line, without this machine's paths.
_CLANG = f"""\
#!/bin/sh
for word; do last=$word; done
case "$*" in
--version) echo "mini clang version {VERSION} (test)"; exit ;;
-print-resource-dir) echo @RESOURCES@; exit ;;
esac
if grep -q BROKEN "$last"; then
    echo "In file included from $last:1:"
    echo "$last:3:5: error: use of undeclared identifier 'x'"
    exit 1
fi
case "$last" in
*kernel/b.c) if [ -n "$MINI_BLOCK" ]; then read -r _ < "$MINI_BLOCK"; fi ;;
esac
while [ $# -gt 0 ]; do
    case "$1" in
    -o) out=$2; shift ;;
    -ffile-prefix-map=*) ;;
    *) flags="$flags $1" ;;
    esac
    shift
done
echo "$flags" > "$out"
"""


def write_tree(root: Path, *sections: Section) -> Path:
    """A tree whose link gives these sections, beside those of a sound kernel."""
    for name, text in {
        "Kbuild": "",
        "Makefile": _MAKEFILE.replace("@PYTHON@", sys.executable),
        "Kconfig": KCONFIG,
        "scripts/Makefile.lib": "_c_flags = -Wall\n",
        "arch/x86/defconfig": "CONFIG_NET=y\n",
        "init/a.c": "int a;\n",
        "kernel/b.c": "int b;\n",
        "kernel/bounds.c": "int bounds;\n",
        "arch/x86/boot/c.c": "int c;\n",
        "prepare.txt": "",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "vmlinux.elf").write_bytes(
        elf64([*SOUND, *sections], BOUNDS, [("start", 0x1000, 0x40)])
    )
    return root


def write_tools(directory: Path) -> Path:
    """A directory with the toolchain, and a ccache that passes everything on."""
    directory.mkdir()
    plain = f"#!/bin/sh\necho LLVM version {VERSION}\n"
    scripts = {
        f"clang{SUFFIX}": _CLANG.replace("@RESOURCES@", str(directory / "resources")),
        "ccache": '#!/bin/sh\nexec "$@"\n',
        **{
            f"{name}{SUFFIX}": plain
            for name in ("ld.lld", "llvm-ar", "llvm-nm", "llvm-objcopy", "llvm-profdata")
        },
    }
    for name, text in scripts.items():
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    return directory
