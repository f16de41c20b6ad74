"""Overlays: edits by structure, and views that leave the tree alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from pydantic import ValidationError

from mepof.errors import InputError, MepofError, WorkError
from mepof.kernel import overlay
from mepof.kernel.overlay import Edit, Overlay, Probe, apply_edit, compose

BODIED = "#define DATA(x) \\\n\tone(x)\t\\\n\ttwo\n\nnext\n"


def edited(text: str, **fields: str) -> str:
    after = apply_edit(text, Edit(file="f", **fields))  # type: ignore[arg-type]
    assert after is not None
    return after


def expanded(text: str, macro: str) -> list[str]:
    """What the C preprocessor makes of a macro, word by word."""
    source = text + f"\nMARK {macro}\n"
    done = subprocess.run(
        ["cpp", "-P", "-"], input=source, capture_output=True, text=True, check=True
    )
    return done.stdout.rpartition("MARK")[2].split()


@pytest.mark.parametrize(
    ("text", "use", "body"),
    [
        (BODIED, "DATA(1)", ["one(1)", "two"]),
        ("#define DATA one two\n", "DATA", ["one", "two"]),
        ("#define DATA one\\\n two\n", "DATA", ["one", "two"]),
        ("#define DATA\n", "DATA", []),
        ("#define DATA(x, y) x y\n", "DATA(1, 2)", ["1", "2"]),
        ("#define DATA \\\n\tone \\\n\nnext\n", "DATA", ["one"]),
        ("#define DATA one \\\n two", "DATA", ["one", "two"]),  # the file's last line
        ("#define DATA one \\\n", "DATA", ["one"]),
        ("#define DATABASE no\n#define DATA one\n", "DATA", ["one"]),
    ],
)
def test_an_edit_of_a_macro_stands_before_or_behind_its_body(
    text: str, use: str, body: list[str]
) -> None:
    behind = edited(text, in_macro="DATA", append="\nthree\nfour\n")
    assert expanded(behind, use) == [*body, "three", "four"]
    before = edited(text, in_macro="DATA", prepend="zero\nnull")
    assert expanded(before, use) == ["zero", "null", *body]


def test_what_follows_an_edited_macro_is_not_drawn_in() -> None:
    for fields in ({"append": "three"}, {"prepend": "zero"}):
        after = edited(BODIED, in_macro="DATA", **fields)
        assert after.endswith("\n\nnext\n")
        assert expanded(after, "next") == ["next"]


def test_an_edit_of_an_array_stands_first_or_last() -> None:
    text = 'static const char *names[] = {\n\t"one",\n\tNULL\n};\nint other[] = {\n1 };\n'
    assert edited(text, in_array="names", prepend='"zero",').startswith(
        'static const char *names[] = {\n"zero",\n\t"one",'
    )
    assert '\tNULL\n"two",\n};\nint other' in edited(text, in_array="names", append='"two",')


def test_an_edit_that_names_no_definition_is_at_the_ends_of_the_file() -> None:
    assert edited("obj-y += a.o\n\n", append="obj-y += b/\n") == "obj-y += a.o\n\nobj-y += b/\n"
    assert edited("obj-y += a.o", append="obj-y += b/") == "obj-y += a.o\n\nobj-y += b/\n"
    assert edited("two\n", prepend="one") == "one\ntwo\n"


def test_a_function_takes_text_at_its_beginning_and_its_end() -> None:
    other = "int add(void);\n\nstatic int\nf(void)\n{\n}\n\n"
    text = f"{other}int add(int a,\n\tint b)\n{{\n\tif (a) {{\n\t}}\n}}\n"
    assert "int b)\n{\n\tfirst();\n\tif" in edited(text, in_function="add", prepend="\tfirst();")
    assert edited(text, in_function="add", append="\tlast();").endswith("\t}\n\tlast();\n}\n")


def test_objtool_treats_cold_parts_as_parts_of_functions() -> None:
    (edit,) = overlay.load("objtool-cold").edits
    # As Linux 6.12 begins and ends it.
    head = "static void elf_add_symbol(struct elf *elf, struct symbol *sym)"
    text = f"{head}\n{{\n\tsym->alias = sym;\n}}\n"
    assert "= sym;\n\tif (strstr(sym->name" in (apply_edit(text, edit) or "")


def test_objtool_finds_replaced_weak_functions_before_the_first_symbol() -> None:
    pragma, edit = overlay.load("objtool-weak").edits
    # As Linux 6.12 begins it.
    head = "int find_symbol_hole_containing(const struct section *sec, unsigned long offset)"
    text = f"#include <fcntl.h>\n\n{head}\n{{\n\tstruct rb_node *n;\n}}\n"
    assert (apply_edit(text, pragma) or "").startswith("#pragma ")
    assert f"{head}\n{{\n\tstruct rb_node *first = " in (apply_edit(text, edit) or "")


def test_objtool_reads_jump_tables_on_after_an_entry_to_the_end_of_a_cold_part(
    tmp_path: Path,
) -> None:
    # As Linux 6.12 does it, of a function with a hot part from 10 to 20 in section 1 and a cold one
    # from 30 to 40 in section 2.
    text = """\
#include <stdio.h>
struct symbol { int sec, offset, len; struct symbol *cfunc; };
static int find_insn(void *file, int sec, int at) { return at == 20 || at == 40 ? 0 : at; }
static int add_jump_table(void *file, const int (*relocs)[2], int count)
{
\tstruct symbol cold = { 2, 30, 10, 0 }, hot = { 1, 10, 10, &cold }, *pfunc = &hot;
\tint found = 0;
\tfor (int i = 0; i < count; i++) {
\t\tint sec = relocs[i][0], at = relocs[i][1];
\t\t/* Clang sometimes leaves dangling unused jump table entries */
\t\tif (sec == pfunc->sec && at == pfunc->offset + pfunc->len)
\t\t\tgoto next;
\t\tif (!find_insn(file, sec, at))
\t\t\tbreak;
\t\tfound++;
next:;
\t}
\treturn found;
}
int main(void)
{
\tconst int relocs[][2] = { {1, 12}, {2, 40}, {2, 33}, {1, 20}, {2, 31} };
\tprintf("%d %d", add_jump_table(0, relocs, 5), find_insn(0, 2, 40));
}
"""
    mended = text
    for edit in overlay.load("objtool-jumps").edits:
        mended = apply_edit(mended, edit) or ""
    found = []
    for version in (text, mended):
        (tmp_path / "jumps.c").write_text(version)
        words: list[str | Path] = [
            "gcc",
            "-Wall",
            "-Werror",
            "-o",
            tmp_path / "jumps",
            tmp_path / "jumps.c",
        ]
        subprocess.run(words, check=True)
        found.append(subprocess.check_output([tmp_path / "jumps"], text=True))
    assert found == ["1 0", "3 0"]


@pytest.mark.parametrize(
    "place", [{"in_macro": "NONE"}, {"in_array": "none"}, {"in_function": "none"}]
)
def test_an_edit_of_a_missing_definition_gives_none(place: dict[str, str]) -> None:
    assert apply_edit(BODIED, Edit(file="f", append="x", **place)) is None  # type: ignore[arg-type]


def test_an_unfinished_array_is_not_edited() -> None:
    assert apply_edit("a[] = {\n1,", Edit(file="f", in_array="a", append="2")) is None


@pytest.mark.parametrize("fields", [{}, {"append": "a", "prepend": "b"}, {"append": "a", "x": 1}])
def test_an_edit_with_not_exactly_one_text_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Edit.model_validate({"file": "f", **fields})


# --- views


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for name, text in {
        "Makefile": "VERSION = 6\n",
        "kernel/Makefile": "obj-y = fork.o\n",
        "kernel/fork.c": "int fork;\n",
        "kernel/sched/core.c": "int core;\n",
        ".git/HEAD": "ref\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "kernel/Makefile").chmod(0o755)
    return root


def laid(
    directory: Path,
    *edits: Edit,
    files: dict[str, str] | None = None,
    compiler: dict[str, str] | None = None,
) -> Overlay:
    for name, text in (files or {}).items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return Overlay(
        name="trial",
        title="a trial",
        directory=directory,
        edit=edits,
        compiler_files=compiler or {},
    )


def state(root: Path) -> dict[str, tuple[int, bytes | None]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in [root, *root.rglob("*")]
    }


def test_a_view_has_the_edits_and_additions_and_links_to_the_rest(
    tree: Path, tmp_path: Path
) -> None:
    before = state(tree)
    view = tmp_path / "view"
    one = laid(
        tmp_path / "overlay",
        Edit(file="kernel/Makefile", append="obj-y += mepof/"),
        Edit(file="kernel/mepof/Makefile", append="obj-y += more.o"),
        files={"kernel/mepof/Makefile": "obj-y = runtime.o\n", "overlay.toml": "no part"},
    )
    two = laid(tmp_path / "empty", Edit(file="kernel/Makefile", append="# last"))
    for _ in range(2):  # a view is made anew over an old one
        compose(tree, (one, two), view, None)
        text = (view / "kernel/Makefile").read_text()
        assert text == "obj-y = fork.o\n\nobj-y += mepof/\n\n# last\n"
        assert (view / "kernel/Makefile").stat().st_mode & 0o777 == 0o755
        assert "obj-y += more.o" in (view / "kernel/mepof/Makefile").read_text()
        assert (view / "Makefile").readlink() == tree / "Makefile"
        assert (view / "kernel/sched").readlink() == tree / "kernel/sched"
        assert sorted(path.name for path in view.iterdir()) == ["Makefile", "kernel"]
        assert state(tree) == before


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (Edit(file="kernel/none.c", append="x"), "no kernel/none.c$"),
        (Edit(file="kernel/fork.c", in_macro="NONE", append="x"), "no NONE in kernel/fork.c$"),
        (Edit(file="kernel/fork.c", in_array="none", append="x"), "no none in kernel/fork.c$"),
        (Edit(file="kernel", append="x"), "no kernel$"),
    ],
)
def test_an_overlay_that_does_not_fit_names_what_is_missing(
    tree: Path, tmp_path: Path, edit: Edit, what: str
) -> None:
    with pytest.raises(WorkError, match=f"`trial` does not fit this tree: {what}"):
        compose(tree, (laid(tmp_path / "overlay", edit),), tmp_path / "view", None)
    assert not (tmp_path / "view").exists()
    optional = edit.model_copy(update={"optional": True})
    compose(tree, (laid(tmp_path / "overlay", optional),), tmp_path / "view", None)


def test_an_overlay_never_replaces_a_file_of_the_tree(tree: Path, tmp_path: Path) -> None:
    own = laid(tmp_path / "overlay", files={"kernel/fork.c": "ours"})
    with pytest.raises(
        WorkError, match=r"already has a kernel/fork.c, which an overlay would replace"
    ):
        compose(tree, (own,), tmp_path / "view", None)


def test_files_of_the_compiler_are_laid_in(tree: Path, tmp_path: Path) -> None:
    resources = tmp_path / "resources"
    wanting = laid(tmp_path / "overlay", compiler={"kernel/x.inc": "include/x.inc"})
    with pytest.raises(MepofError, match=r"x\.inc is missing"):
        compose(tree, (wanting,), tmp_path / "view", resources)
    with pytest.raises(WorkError, match="which this toolchain does not have"):
        compose(tree, (wanting,), tmp_path / "view", None)
    (resources / "include").mkdir(parents=True)
    (resources / "include/x.inc").write_text("formats")
    compose(tree, (wanting,), tmp_path / "view", resources)
    assert (tmp_path / "view/kernel/x.inc").read_text() == "formats"


# --- the overlays that come with mepof

# What the edits of our overlays look for, as Linux 5.10, 6.1 and 6.12 have it; their own texts
# (include/asm-generic/vmlinux.lds.h, tools/objtool/check.c) are too large to keep here.
EXCERPTS = {
    "6.1": {
        "Makefile": "KBUILD_LDFLAGS :=\n",
        "arch/Kconfig": "config KPROBES\n\tbool\n",
        "arch/um/Makefile": "ARCH_DIR := arch/um\n",
        "arch/x86/um/vdso/Makefile": "VDSO64-y := y\n",
        "init/Kconfig": "config CC_VERSION_TEXT\n\tstring\n",
        "scripts/Makefile.lib": "_c_flags += $(CFLAGS_GCOV)\n",
        "kernel/Makefile": "obj-y = fork.o\n",
        "kernel/module/main.c": (
            '#include "internal.h"\n\n'
            "static int find_module_sections(struct module *mod, struct load_info *info)\n{\n"
            '\tmod->kp = section_objs(info, "__param",\n\t\t\t       sizeof(*mod->kp), '
            "&mod->num_kp);\n\treturn 0;\n}\n"
        ),
        "scripts/module.lds.S": (
            "SECTIONS {\n\t/DISCARD/ : {\n\t\t*(.discard)\n\t}\n}\n\n"
            "/* bring in arch-specific sections */\n#include <asm/module.lds.h>\n"
        ),
        "include/asm-generic/vmlinux.lds.h": (
            "#define TEXT_TEXT\t\t\t\t\t\t\t\\\n\t\tALIGN_FUNCTION();\t\t\t\t\\\n"
            "\t\t*(.text.hot .text.hot.*)\t\t\t\t\\\n\t\t*(TEXT_MAIN .text.fixup)\t\t\\\n"
            "\t\t*(.text.unlikely .text.unlikely.*)\t\t\t\\\n\n"
            "#define SOFTIRQENTRY_TEXT\t\t\t\t\t\t\\\n\t\t*(.softirqentry.text)\t\t\t\t\\\n"
            "\t\t__softirqentry_text_end = .;\n\n"
            "/* .data section */\n#define DATA_DATA\t\t\t\t\t\t\t\\\n"
            "\t*(.xiptext)\t\t\t\t\t\t\t\\\n\t*(DATA_MAIN)\t\t\t\t\t\t\t\\\n"
            "\tBRANCH_PROFILE()\t\t\t\t\t\t\\\n\tTRACE_PRINTKS()\n"
            "\n/*\n * Data section helpers\n */\n"
            "#define ELF_DETAILS\t\t\t\t\t\t\t\\\n"
            "\t\t.comment 0 : { *(.comment) }\t\t\t\t\\\n\t\t.symtab 0 : { *(.symtab) }\n"
        ),
        "tools/objtool/check.c": (
            "static const char *uaccess_safe_builtin[] = {\n\t/* KASAN */\n"
            '\t"kasan_report",\n\tNULL\n};\n'
        ),
    },
}
EXCERPTS["6.12"] = {
    **EXCERPTS["6.1"],
    "tools/objtool/check.c": (
        "static const char *uaccess_safe_builtin[] = {\n\t/* KASAN */\n"
        '\t"kasan_report",\n\t/* misc */\n\t"copy_mc_fragile",\n\tNULL\n};\n'
    ),
}
LOADERS = ("kernel/module/main.c", "kernel/module.c")
EXCERPTS["5.10"] = {
    LOADERS[1] if name == LOADERS[0] else name: text for name, text in EXCERPTS["6.1"].items()
}

# Those of one toolchain: the runtimes of two would be at the same place.
GCC = ("gcov", "gcov-no-checksum", "gcov-use")
NAMES = sorted(
    path.name
    for path in (overlay.native_directory() / "overlays").iterdir()
    if path.is_dir() and path.name not in GCC
)


def view_of(tmp_path: Path, excerpts: dict[str, str], *names: str) -> Path:
    """A view of a tree of these files with overlays of ours that are for it."""
    tree, resources = tmp_path / "tree", tmp_path / "resources"
    for name, text in excerpts.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    overlays = tuple(each for each in map(overlay.load, names) if each.is_for(tree))
    for each in overlays:
        for name in each.compiler_files.values():
            (resources / name).parent.mkdir(parents=True, exist_ok=True)
            (resources / name).write_text("formats")
    compose(tree, overlays, tmp_path / "view", resources)
    return tmp_path / "view"


@pytest.mark.parametrize("release", EXCERPTS)
def test_our_overlays_fit_every_supported_release(tmp_path: Path, release: str) -> None:
    view = view_of(tmp_path, EXCERPTS[release], *NAMES)
    script = (view / "include/asm-generic/vmlinux.lds.h").read_text()
    words = expanded(script, "DATA_DATA")
    assert words[0] == "*(.xiptext)"
    reserved = "".join(expanded(script, "SOFTIRQENTRY_TEXT")).partition("end=.;")[2]
    assert reserved.endswith("__bolt_reserved_start=.;.+=0x200000;__bolt_reserved_end=.;")
    assert "KEEP(*(__llvm_prf_cnts))" in words
    assert expanded(script, "END") == ["END"]
    checked = (view / "tools/objtool/check.c").read_text()
    assert checked.index("__llvm_profile_instrument_memop") < checked.index("kasan_report")
    assert "MEPOF_CFLAGS" in (view / "scripts/Makefile.lib").read_text()
    assert "kernel/kload/Kconfig" in (view / "init/Kconfig").read_text()
    um = (view / "arch/um/Makefile").read_text()
    assert um.index("MEPOF_LINK") < um.index("ARCH_DIR") < um.index("-mcmodel=large")
    assert "obj-$(CONFIG_MODULES)" in (view / "kernel/mepof/Makefile").read_text()
    (loader,) = (path.read_text() for path in map(view.joinpath, LOADERS) if path.is_file())
    found = loader.index("mepof_module_found(mod,")
    assert loader.index("find_module_sections(") < found < loader.index("mod->kp =")
    reset = (view / "kernel/mepof/debugfs.c").read_text()
    assert reset.index("ssize_t reset_write(") < reset.index("mepof_modules_reset();")
    assert "KEEP(*(__llvm_prf_data))" in (view / "scripts/module.lds.S").read_text()


@pytest.mark.parametrize("release", EXCERPTS)
def test_gccs_overlays_fit_every_supported_release(tmp_path: Path, release: str) -> None:
    files = {
        **EXCERPTS[release],
        "init/main.c": (
            "static void __init do_ctors(void)\n{\n#if defined(CONFIG_CONSTRUCTORS)\n#endif\n}\n"
        ),
        "scripts/Makefile.build": "objtool_args = check\n",
        "scripts/Makefile.gcc-plugins": "GCC_PLUGIN := $(gcc-plugin-y)\n",
    }
    view = view_of(tmp_path, files, *GCC)
    checked = (view / "tools/objtool/check.c").read_text()
    assert checked.index("__gcov_topn_values_profiler") < checked.index("kasan_report")
    defined = "#define CONFIG_CONSTRUCTORS 1\n"
    assert f"{{\n{defined}#if" in (view / "init/main.c").read_text()
    assert (view / "include/asm-generic/vmlinux.lds.h").read_text().startswith(defined)
    plugins = (view / "scripts/Makefile.gcc-plugins").read_text()
    assert plugins.index("mepof_counts_plugin.so") > plugins.index("GCC_PLUGIN :=")
    assert "--no-unreachable" in (view / "scripts/Makefile.build").read_text()
    assert (view / "scripts/gcc-plugins/mepof_counts_plugin.c").is_file()


@pytest.mark.parametrize("release", EXCERPTS)
def test_sections_that_profiles_make_come_before_the_kernels_own(
    tmp_path: Path, release: str
) -> None:
    view = view_of(tmp_path, EXCERPTS[release], "text-sections")
    script = (view / "include/asm-generic/vmlinux.lds.h").read_text()
    words = expanded(script, "TEXT_TEXT")
    places = [
        words.index(word)
        for word in ("*(.text.split", "*(.text.unlikely", "*(.text.hot", "*(TEXT_MAIN")
    ]
    assert places == sorted(places)
    # A section of each function, and none that begins with a dot or is called `.text` itself.
    assert "*(.text.[0-9a-zA-Z_]*)" in words[: places[-1]]


def test_maps_of_basic_blocks_have_a_section_of_their_own(tmp_path: Path) -> None:
    view = view_of(tmp_path, EXCERPTS["6.12"], "propeller")
    details = expanded((view / "include/asm-generic/vmlinux.lds.h").read_text(), "ELF_DETAILS")
    assert "*(.llvm_bb_addr_map)" in details and "*(.symtab)" in details


def test_kernels_with_a_section_for_maps_get_no_other(tmp_path: Path) -> None:
    upstream = {**EXCERPTS["6.12"], "scripts/Makefile.propeller": "\n"}
    view = view_of(tmp_path, upstream, "propeller")
    script = "include/asm-generic/vmlinux.lds.h"
    assert (view / script).read_text() == upstream[script]


@pytest.mark.parametrize(
    ("probe", "succeeds"),
    [
        (Probe(file="kernel/sched"), True),
        (Probe(file="kernel/none"), False),
        (Probe(file="kernel/fork.c", text="int fork"), True),
        (Probe(file="kernel/fork.c", text="int spoon"), False),
        (Probe(file="kernel/none", text="int"), False),
        (Probe(file="kernel/sched", text="int"), False),  # a directory has no text
    ],
)
def test_a_probe_tells_which_trees_an_overlay_is_for(
    tree: Path, tmp_path: Path, probe: Probe, succeeds: bool
) -> None:
    always = laid(tmp_path / "overlay")
    assert always.is_for(tree)
    assert always.model_copy(update={"present": probe}).is_for(tree) is succeeds
    assert always.model_copy(update={"absent": probe}).is_for(tree) is not succeeds


def test_an_edit_follows_a_file_to_the_name_that_a_tree_has(tree: Path, tmp_path: Path) -> None:
    edit = Edit(file="kernel/fork/main.c", formerly=("kernel/fork.c",), append="int moved;")
    compose(tree, (laid(tmp_path / "overlay", edit),), tmp_path / "view", None)
    assert (tmp_path / "view/kernel/fork.c").read_text() == "int fork;\n\nint moved;\n"
    (tree / "kernel/fork").mkdir()
    (tree / "kernel/fork/main.c").write_text("int new;\n")
    compose(tree, (laid(tmp_path / "overlay", edit),), tmp_path / "view", None)
    assert (tmp_path / "view/kernel/fork/main.c").read_text() == "int new;\n\nint moved;\n"
    assert (tmp_path / "view/kernel/fork.c").read_text() == "int fork;\n"


BUG = """\
#define ASM_UD2 ".byte 0x0f, 0x0b"
#define _BUG_FLAGS(ins, flags) \\
do { \\
    asm volatile("1:\\t" ins "\\n" \\
             ".pushsection __bug_table,\\"aw\\"\\n" \\
             "2:\\t.long 1b - 2b\\n" \\
             "\\t.word %c0\\n" \\
             ".popsection" : : "i" (flags)); \\
} while (0)
#define __WARN_FLAGS(flags) \\
do { \\
    _BUG_FLAGS(ASM_UD2, flags); \\
    annotate_reachable(); \\
} while (0)
"""
USE = """
#define CONFIG_STACK_VALIDATION
#define BUGFLAG_WARNING 1
#define instrumentation_begin()
#define instrumentation_end()
#include "bug.h"
long counter;
void warned(void) { __WARN_FLAGS(2); counter++; }
"""


def test_a_warning_of_old_kernels_is_one_piece_of_assembly(tree: Path, tmp_path: Path) -> None:
    overlays = (overlay.load("objtool-warn"),)
    assert not overlays[0].is_for(tree)
    header = tree / "arch/x86/include/asm/bug.h"
    header.parent.mkdir(parents=True)
    header.write_text(BUG)
    assert overlays[0].is_for(tree)
    compose(tree, overlays, tmp_path / "view", None)
    directory = (tmp_path / "view" / header.relative_to(tree)).parent
    made = tmp_path / "warned.o"
    command = ["gcc", "-O2", "-x", "c", "-c", f"-I{directory}", "-o", str(made), "-"]
    subprocess.run(command, input=USE, text=True, check=True)
    # What stands at the address that the note names is behind the trap.
    with made.open("rb") as file:
        sections = {section.name: section for section in ELFFile(file).iter_sections()}
        notes, text = sections[".rela.discard.reachable"], sections[".text"].data()
        assert isinstance(notes, RelocationSection)
        (noted,) = notes.iter_relocations()
    assert text[noted["r_addend"] - 2 : noted["r_addend"]] == b"\x0f\x0b"
    header.write_text(BUG.replace("annotate_reachable();", ""))
    assert not overlays[0].is_for(tree)  # as it is since 5.18


def test_what_does_not_fit_a_former_file_is_said_of_that_file(tree: Path, tmp_path: Path) -> None:
    edit = Edit(file="kernel/none.c", formerly=("kernel/fork.c",), in_macro="FORK", append="x")
    with pytest.raises(WorkError, match=r"no FORK in kernel/fork\.c"):
        compose(tree, (laid(tmp_path / "overlay", edit),), tmp_path / "view", None)


def test_every_exclusion_says_why_and_is_a_pattern_of_make() -> None:
    found = overlay.exclusions()
    assert len({e.match for e in found}) == len(found) > 10
    for exclusion in found:
        assert exclusion.reason
        assert exclusion.match.count("%") <= 1
        assert not any(blank in exclusion.match for blank in " \t$#")


def test_an_unknown_overlay_is_an_error() -> None:
    with pytest.raises(InputError, match=r"cannot read the overlay .*/none/overlay\.toml: No such"):
        overlay.load("none")
