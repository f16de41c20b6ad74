"""What belongs to a kernel where it is installed: the *headers* with which other modules are
compiled (makefiles, generated headers, the programs that kbuild runs, and the symbols that the
kernel exports), and its device trees.

Newer kernels say themselves what other modules need: ``scripts/package/install-extmod-build``. For
the others, the list is that of their ``scripts/package/builddeb``.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from mepof.errors import WorkError
from mepof.kernel import kbuild, kconfig
from mepof.kernel.build_spec import BuildPaths, BuildSpec
from mepof.tar import member
from mepof.toolchain.protocol import Toolchain, Tools

#: In a build, if its configuration has modules.
HEADERS = "headers.tar"
#: In a build, if its configuration has any.
DEVICE_TREES = "device-trees.tar"

# As errors call them.
_HEADERS, _TREES = "the headers for modules", "the device trees"
_SCRIPT = "scripts/package/install-extmod-build"
# What every build of modules runs.
_PROGRAMS = ("scripts/basic/fixdep", "scripts/mod/modpost", "tools/objtool/objtool")
# Of `scripts`: what only the kernel itself is built with.
_KERNELS_OWN = {"atomic", "dtc", "kconfig", "package"}
_CONFIGURED = ("auto.conf", "kernel.release")
# How DKMS and its users name the tools of every kernel that Clang compiled, whichever version it
# was.
_UNVERSIONED = {"LLVM": "1", "CC": "clang", "LD": "ld.lld"}


def keep(spec: BuildSpec, tools: Tools, paths: BuildPaths, cores: int) -> str | None:
    """Add to a finished build what belongs to it where it is installed.

    Returns:
        why it has no headers, if it allows modules and has none.

    Raises:
        WorkError: something cannot be made.
    """
    config = (paths.output / "config").read_text(encoding="utf-8")
    for name in (HEADERS, DEVICE_TREES):
        (paths.output / name).unlink(missing_ok=True)
    # As scripts/package/builddeb decides.
    if "CONFIG_OF_EARLY_FLATTREE=y" in config.splitlines() and (
        (paths.tree / "arch" / spec.arch.source / "boot/dts").is_dir()
    ):
        _keep_device_trees(spec, tools, paths, cores)
    return _keep_headers(spec, tools, paths) if kconfig.has_modules(config) else None


def _keep_device_trees(spec: BuildSpec, tools: Tools, paths: BuildPaths, cores: int) -> None:
    made = _empty(paths.work / "device-trees")
    kbuild.make(spec, tools, paths, _TREES, f"-j{cores}", "dtbs")
    # Without boards, there may be no list of what to install.
    boards = paths.objects / "arch" / spec.arch.source / "boot/dts"
    if any(boards.rglob("*.dtb")):
        kbuild.make(spec, tools, paths, _TREES, f"INSTALL_DTBS_PATH={made}", "dtbs_install")
        _pack(made, paths.output / DEVICE_TREES)


def _keep_headers(spec: BuildSpec, tools: Tools, paths: BuildPaths) -> str | None:
    made = _empty(paths.work / "headers")
    script = paths.tree / _SCRIPT
    if script.is_file():
        # Of the tree itself: in a view of it, directories are links, and makefiles have our flags.
        words = (f"+srctree={quote(str(paths.tree))}", "sh", quote(str(script)), quote(str(made)))
        command = " ".join(words).replace("$", "$$")
        try:
            kbuild.make(
                spec, tools, paths, _HEADERS, "run-command", f"KBUILD_RUN_COMMAND={command}"
            )
        except WorkError as error:
            if spec.arch.is_native:
                raise
            # It compiles programs for the other architecture, whose libraries may be missing.
            return error.message
    else:
        for root, name in _listed(paths.tree, paths.objects, spec.arch.source):
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, made / name, follow_symlinks=False)
    if any(_machine(made / name) not in (None, spec.arch.elf_machine) for name in _PROGRAMS):
        return f"kbuild's programs are for this machine, not for {spec.arch.name}; build it on one"
    for path in made.rglob("*"):
        match _machine(path):
            case None:
                continue
            case spec.arch.elf_machine:
                # Debug information and the identifier that is computed of it name our directory.
                options = ("--strip-debug", "--remove-section=.note.gnu.build-id")
                tools.run([tools.toolchain.tool("objcopy", spec.arch), *options, path])
            case _:
                path.unlink()
    shutil.copyfile(paths.output / "config", made / ".config")
    makefile = made / "Makefile"
    text = makefile.read_text(encoding="utf-8")
    makefile.write_text(_defaults(spec, tools.toolchain) + text, encoding="utf-8")
    _pack(made, paths.output / HEADERS)
    return None


def _defaults(spec: BuildSpec, toolchain: Toolchain) -> str:
    """Lines for the top of a makefile: modules are compiled by what compiled their kernel, unless
    make's command line names something else."""
    variables = toolchain.make_variables(spec.arch)
    unversioned = _UNVERSIONED if "LLVM" in variables else {}

    def unless_given(name: str) -> str:
        given = f"$(filter-out {unversioned.get(name, '')},$({name}))"
        return f"ifneq ($(if {given},$(origin {name})),command line)"

    lines = []
    for name, value in variables.items():
        if value and not name.startswith("HOST"):
            lines += [unless_given(name), f"override {name} := {value}", "endif"]
    if unversioned:
        words = " ".join(f"{name}={value}" for name, value in unversioned.items())
        passed_on = f"MAKEOVERRIDES := $(filter-out {words},$(MAKEOVERRIDES))"
        # `LLVM` names all tools.
        lines = [unless_given("LLVM"), passed_on, *lines, "endif"]
    return "\n".join(("# What compiled the kernel compiles its modules.", *lines, "", ""))


def _listed(tree: Path, objects: Path, source: str) -> Iterator[tuple[Path, str]]:
    """What other modules need of the tree, and then of the objects' directory."""
    below = f"arch/{source}"
    for root in (tree, objects):
        wanted = ["include/**/*", "scripts/**/*", f"{below}/**/include/**/*"]
        if root == tree:
            wanted += ["Makefile", f"{below}/Makefile*", f"{below}/**/scripts/**/*"]
            wanted += [f"{below}/**/Kbuild.platforms", f"{below}/**/Platform"]
        else:
            wanted += ["Module.symvers", "tools/objtool/objtool"]
        for path in (path for pattern in wanted for path in root.glob(pattern)):
            name = path.relative_to(root)
            if (path.is_file() or path.is_symlink()) and not _is_left_out(name):
                yield root, name.as_posix()


def _is_left_out(name: Path) -> bool:
    # `include/config` has an empty file for each option.
    return (
        (name.parts[0] == "scripts" and name.parts[1] in _KERNELS_OWN)
        or (name.parts[:2] == ("include", "config") and name.name not in _CONFIGURED)
        or name.suffix in (".o", ".cmd")
    )


def _machine(path: Path) -> int | None:
    """The machine that a program is for."""
    if path.is_symlink() or not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(20)
    return int.from_bytes(head[18:], "little") if head.startswith(b"\x7fELF") else None


def _empty(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    return path


def _pack(root: Path, target: Path) -> None:
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            entry = member(path.relative_to(root).as_posix())
            if path.is_symlink():
                entry.type, entry.linkname = tarfile.SYMTYPE, str(path.readlink())
                tar.addfile(entry)
            elif path.is_file():
                about = path.stat()
                entry.size = about.st_size
                entry.mode = 0o755 if about.st_mode & 0o100 else 0o644
                with path.open("rb") as file:
                    tar.addfile(entry, file)
