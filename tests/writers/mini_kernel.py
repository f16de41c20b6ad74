"""A miniature kernel tree and toolchain: kbuild's interface, in a tenth of a second.

The tree has what mepof touches of a real one: configuration targets that drop unmet options
without a word (by kconfiglib), ``O=``, kbuild's progress lines, ``scripts/Makefile.lib``
with per-file flags, objects that are made again when their command changes and that tell
their functions, a ``vmlinux`` to check, and a module. Failures are injected by its files:

- a source with the word ``BROKEN`` does not compile, and with ``BROKEN`` in ``prepare.txt``
  the target ``prepare`` fails;
- ``vmlinux.elf`` is what the link makes, and ``module.elf`` that of a module;
- of a source with ``OBJTOOL: function``, objtool warns where the function has a profile, and with
  ``OBJTOOL ALWAYS: function`` also where it has none;
- where the environment names a fifo in ``MINI_BLOCK``, ``kernel/b.c`` compiles until killed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from mepof.toolchain import programs
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
	depends on NET # if at all
config MODULES
	bool "Modules"
	option modules
config DRIVER
	tristate "A driver"
	depends on MODULES
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
# What only a whole tree has.
_KCONFIG_OF_A_TREE = """
config CC_IS_CLANG
	def_bool y
source "arch/Kconfig"
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
cc-option = $(1)
# A path from where the objects are: there kbuild runs itself again.
ifneq ($(MEPOF_SELECTED),)
override MEPOF_SELECTED := $(O)/$(MEPOF_SELECTED)
endif
include scripts/Makefile.lib
-include $(O)/.config
# As kbuild's if_changed: by the source's age and the command that is kept in .NAME.o.cmd.
kept = $(@D)/.$(@F).cmd
command = $(CC) $(KCFLAGS) $(_c_flags) -c -o $@ $<
blank := $() $()
one-word = x$(subst $(blank),_,$(strip $(1)))
saved = $(subst $(O)/,,savedcmd_$@ := $(command))
as-before = $(filter $(call one-word,$(saved)),$(call one-word,$(first-line)))
first-line = $(if $(wildcard $(kept)),$(shell head -n 1 $(kept)))
changed = $(or $(filter-out FORCE,$?),$(if $(as-before),,y))

allnoconfig olddefconfig:
	@mkdir -p $(O)
	@srctree=. KCONFIG_CONFIG=$(O)/.config @PYTHON@ -m $@ >/dev/null 2>&1
defconfig:
	@mkdir -p $(O)
	@cp arch/x86/configs/defconfig $(O)/.config
prepare:
	@! grep BROKEN prepare.txt
vmlinux: $(O)/vmlinux
$(O)/vmlinux: $(addprefix $(O)/,$(objects)) vmlinux.elf
	@echo '  LD      vmlinux'
	@cp vmlinux.elf $(O)/vmlinux
	@echo '0000000000001000 T _stext' > $(O)/System.map
bzImage: vmlinux $(O)/arch/x86/boot/c.o
	@cat $(O)/vmlinux $(addprefix $(O)/,$(objects)) > $(O)/arch/x86/boot/bzImage
# The order of the last build with modules is left behind where there are none.
modules: $(if $(filter m,$(CONFIG_DRIVER)),$(O)/drivers/m.ko)
	@for each in $(basename $(notdir $^)); do echo drivers/$$each.o; done > $(O)/modules.order
$(O)/drivers/m.ko: $(O)/drivers/m.o
	@echo '  LD [M]  drivers/m.ko'
	@cp module.elf $@
$(O)/%.o: %.c FORCE
	$(if $(changed),@mkdir -p $(@D))
	$(if $(changed),@echo '  CC $(if $(filter drivers/%,$*),[M],   )  $*.o')
	$(if $(changed),@$(command))
	$(if $(changed),@printf '%s\\n' '$(saved)' 'source_$@ := $<' > $(kept))
	@touch $(@D)/built-in.a
.PHONY: FORCE allnoconfig olddefconfig defconfig prepare vmlinux bzImage modules
"""

# The compiled file is the command line, without this machine's paths, and the functions' names.
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
    case "$1" in
    -fprofile-use=*) profile=${{1#*=}} ;;
    -fno-profile-use) profile= ;;
    esac
    shift
done
name=${{last%.c}}.o
warn() {{ [ -z "$1" ] || echo "$name: warning: objtool: $1.cold+0x1f: unreachable instruction"; }}
spared() {{ grep -q "[(|]$1[)|]" "${{out%/"$name"}}/$profile"; }}
warn "$(sed -n 's/.*OBJTOOL ALWAYS: //p' "$last")"
function=$(sed -n 's/.*OBJTOOL: //p' "$last")
[ -z "$profile" ] || spared "$function" || warn "$function"
{{ echo "$flags"; sed -n 's/^void \\(.*\\)(void).*/defines \\1/p' "$last"; }} > "$out"
"""

# Its profiles are the command that made them.
_PROFDATA = f"""\
#!/bin/sh
case "$*" in
*--version) echo LLVM version {VERSION}; exit ;;
esac
for word; do last=$word; done
case "$*" in
*--text*) cat "$3" > "$last" ;;  # a profile is its own text
*--all-functions*) printf '  start:\\n    Hash: 0x1\\n    Counters: 1\\n    Block counts: [7]\\n' ;;
*--num-threads=1*) cat "$3" > "$last" ;;
*) echo "$*" > "$last" ;;
esac
"""

# It complains about objects without symbols in the middle of a line, unless it must be quiet.
_NM = """\
#!/bin/sh
case "$*" in
*--quiet*) ;;
*) printf 'init/a'; echo 'kernel/bounds.o: no symbols'; echo '.o: start T 0 10' ;;
esac
for word; do last=$word; done
for object in $(cat "${last#@}"); do
    sed -n "s|^defines \\(.*\\)|$object: \\1 T 0 10|p" "$object"
done
echo 'warning: nothing of note'
"""


def write_tree(root: Path, *sections: Section, contents: Mapping[str, bytes] | None = None) -> Path:
    """A tree whose link gives these sections in addition to those of a valid kernel."""
    for name, text in {
        "Kbuild": "",
        "Makefile": _MAKEFILE.replace("@PYTHON@", sys.executable),
        "Kconfig": KCONFIG + _KCONFIG_OF_A_TREE,
        "scripts/Makefile.lib": "_c_flags = -Wall\n",
        "scripts/kconfig/Makefile": "simple-targets := allnoconfig defconfig\n",
        "include/asm-generic/vmlinux.lds.h": "#define TEXT_TEXT \\\n\t*(.text)\n"
        "#define SOFTIRQENTRY_TEXT \\\n\t*(.softirqentry.text)\n",
        "arch/Kconfig": "",
        "arch/x86/configs/defconfig": "CONFIG_NET=y\n",
        "init/a.c": "void start(void) {}\nvoid stop(void) {}\n",
        "kernel/b.c": "void work(void) {}\n",
        "kernel/bounds.c": "int bounds;\n",
        "arch/x86/boot/c.c": "int c;\n",
        "drivers/m.c": "void drive(void) {}\n",
        "prepare.txt": "",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "vmlinux.elf").write_bytes(
        elf64([*SOUND, *sections], BOUNDS, [("start", 0x1000, 0x40)], contents=contents)
    )
    (root / "module.elf").write_bytes(elf64([(".text", 0, 0x20, CODE)], {}))
    return root


CLANG = {
    "compiler": f"clang{SUFFIX}",
    "linker": f"ld.lld{SUFFIX}",
    "archiver": f"llvm-ar{SUFFIX}",
    "nm": f"llvm-nm{SUFFIX}",
    "objcopy": f"llvm-objcopy{SUFFIX}",
    "profile-merger": f"llvm-profdata{SUFFIX}",
    "rewriter": f"llvm-bolt{SUFFIX}",
}


@contextmanager
def tools_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write the toolchain, and put it and the system's programs alone on PATH."""
    made = write_tools(root)
    monkeypatch.setenv("PATH", f"{made}:/usr/bin:/bin")
    forget_tools()
    yield made
    forget_tools()


def forget_tools() -> None:
    """Let programs be asked again what they are: there may be others of the same names."""
    programs.banner_of.cache_clear()
    programs.version_of.cache_clear()


def write_tools(
    directory: Path,
    commands: Mapping[str, str] = CLANG,
    spelling: Mapping[str, str] | None = None,
) -> Path:
    """A directory with a toolchain, and a ccache that passes everything on.

    Args:
        commands: the tools' names, by their roles.
        spelling: flags of a compiler that does not spell them like Clang, by Clang's.
    """
    directory.mkdir()
    compiler = _CLANG.replace("@RESOURCES@", str(directory / "resources"))
    for flag, own in (spelling or {}).items():
        compiler = compiler.replace(flag, own)
    special = {"compiler": compiler, "nm": _NM, "profile-merger": _PROFDATA}
    plain = f"#!/bin/sh\necho LLVM version {VERSION}\n"
    scripts = {
        **{command: special.get(role, plain) for role, command in commands.items()},
        "ccache": '#!/bin/sh\nexec "$@"\n',
    }
    for name, text in scripts.items():
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    return directory
