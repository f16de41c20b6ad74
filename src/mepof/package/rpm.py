"""``rpm``: packages ``kernel-RELEASE`` and ``kernel-devel-RELEASE`` for Fedora, RHEL, openSUSE and
the distributions that are made of them. What is installed where, and the scripts, are those of the
kernel's own ``scripts/package/kernel.spec`` (Linux 7.3).

The release is in the name, unlike there: another revision of the same kernel replaces it, since it
has the same files, and any other kernel is installed beside it, whatever the package manager is
told about kernels.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from mepof.arch import Arch
from mepof.errors import WorkError
from mepof.kernel.installed import DEVICE_TREES, HEADERS
from mepof.package.contents import (
    MAINTAINER,
    Content,
    Link,
    check_arch,
    check_release,
    data_of,
    directories,
    has_initrd,
    headers_beside,
    mode_of,
    unpacked,
    with_modules,
)
from mepof.package.protocol import Kernel
from mepof.process import find_tool, run
from mepof.tar import TIME

_PROGRAM, _PACKAGE = "rpmbuild", "rpm"
# Where rpm's own settings are; those of a distribution, of the machine and of the user are not
# read, since they change what is written.
_SETTINGS = Path("/usr/lib/rpm")
_OWN_SETTINGS = (f"--macros={_SETTINGS / 'macros'}", f"--rcfile={_SETTINGS / 'rpmrc'}")
# Where rpm itself works; the paths that it is given must not have spaces.
_SCRATCH = "/var/tmp"
_PROGRESS = ("Building ", "+ ")
_LABEL = r"%{NAME}\t%{VERSION}\t%{RELEASE}\t%{ARCH}"
_MACROS = {
    "_buildhost": "localhost",
    "use_source_date_epoch_as_buildtime": "1",
    "_target_platform": "%{_target_cpu}-linux",
    # What every rpm reads since 4.6.
    "_rpmformat": "4",
    "_binary_payload": "w6.xzdio",
    "_binary_filedigest_algorithm": "8",
    # Nothing is stripped or compressed: the kernel and its modules are as they were built.
    "__os_install_post": "%{nil}",
    "debug_package": "%{nil}",
    "_build_id_links": "none",
    "_build_name_fmt": "made.rpm",
}
_SPEC = """Name: {name}
Version: {version}
Release: {revision}
Summary: {summary}
License: GPL-2.0-only WITH Linux-syscall-note
Packager: {packager}
AutoReqProv: no
{fields}
%description
{description}

%install
cp -a {staged}/. %{{buildroot}}/

{scripts}
%files
%defattr(-, root, root)
{files}
"""
# The boot loader's entry and the initramfs, if there are any, are made of what is in /boot.
# `kernel.spec` has it as `%post`, which is before the files of the revision that is replaced are
# removed: depmod and the maker of the initramfs would see modules that are about to go. Fedora's
# own kernels call kernel-install in `%posttrans`, too.
#
# While something is copied, it has a name that no boot loader looks for.
_POSTTRANS = """set -e
release={release}
modules=/lib/modules/$release
new=/boot/.mepof-$release
trap 'rm -rf "$new"' EXIT
mkdir -p /boot
rm -rf "$new"
for file in vmlinuz System.map config; do
    cp "$modules/$file" "$new"
    mv -f "$new" "/boot/$file-$release"
done
if [ -d "$modules/dtb" ]; then
    cp -r "$modules/dtb" "$new"
    rm -rf "/boot/dtb-$release"
    mv "$new" "/boot/dtb-$release"
fi
{depmod}if [ -x /usr/bin/kernel-install ]; then
    /usr/bin/kernel-install add "$release" "$modules/vmlinuz"
fi
"""
_DEPMOD = 'depmod -F "$modules/System.map" "$release"\n'
# Not where another revision has just been installed.
_PREUN = """if [ "$1" = 0 ] && [ -x /usr/bin/kernel-install ]; then
    /usr/bin/kernel-install remove {release}
fi
"""
# Of `depmod`.
_TABLES = (
    *("alias", "alias.bin", "builtin.alias.bin", "builtin.bin", "dep", "dep.bin", "devname"),
    *("softdep", "symbols", "symbols.bin", "weakdep"),
)


class RpmPackage:
    """A package for Fedora, RHEL, openSUSE and others."""

    suffix = "rpm"
    beside = True
    takes_file = False
    has_modules = True
    of_source = False
    programs: tuple[tuple[str, str], ...] = ((_PROGRAM, _PACKAGE),)

    def check(self, arch: Arch, given: Path | None) -> None:
        check_arch(arch, "rpm")

    def write(self, kernel: Kernel, given: Path | None, target: Path) -> None:
        self.check(kernel.arch, given)
        check_release(kernel.release)
        # In a spec file, `%` begins a macro; a compiler may be named by its path.
        compiler = kernel.compiler.replace("%", "%%")
        below = _directory(kernel)
        files, ghosts = dict(with_modules(kernel, below)), dict(_ghosts(kernel))
        fields = ["Requires(posttrans): coreutils"]
        # Also what is called later, such as a maker of the initramfs, runs depmod.
        fields += ["Requires: kmod"] if kernel.modules else []
        fields += ["Recommends: dracut"] if has_initrd(kernel) else []
        depmod = _DEPMOD if kernel.modules else ""
        posttrans = _POSTTRANS.format(release=kernel.release, depmod=depmod)
        spec = _spec(
            kernel,
            "kernel",
            summary=f"Linux {kernel.release}",
            description=f"Built by mepof with {compiler}.",
            fields="\n".join(fields),
            scripts=f"%posttrans\n{posttrans}\n%preun\n{_PREUN.format(release=kernel.release)}",
            files="\n".join(_listed(kernel, files, ghosts)),
        )
        _build(spec, files | ghosts, kernel.arch.cpu, target)
        if (kernel.build / HEADERS).is_file():
            spec = _spec(
                kernel,
                "kernel-devel",
                summary=f"headers of Linux {kernel.release}",
                description=f"With these, modules are compiled for it, by {compiler}.",
                # Libraries of the programs in it.
                fields="Requires: libc.so.6()(64bit)\nRequires: libelf.so.1()(64bit)",
                scripts="",
                # Either package may be removed last.
                files=f"/{_sources(kernel)}\n%dir /{below}\n/{below}/build",
            )
            _build(spec, dict(_headers(kernel)), kernel.arch.cpu, headers_beside(target))


@dataclass(frozen=True)
class Label:
    """What a package calls itself."""

    name: str
    version: str
    revision: str
    arch: str

    def __str__(self) -> str:
        return f"{self.name}-{self.version}-{self.revision}.{self.arch}"


def read_label(package: Path) -> Label:
    """What a package calls itself.

    Raises:
        WorkError: it cannot be read.
    """
    # Otherwise, rpm reads a path as a pattern, and a file of text as names of packages.
    literal = ("--noglob", "--nomanifest")
    words = ("--query", "--package", "--nosignature", *literal, "--queryformat", _LABEL)
    reader = find_tool("rpm", f"apt-get install {_PACKAGE}")
    done = run([reader, *_OWN_SETTINGS, *words, package], env={"LC_ALL": "C"}, check=False)
    if done.status != 0:
        raise WorkError(f"{package} cannot be read as a package")
    return Label(*done.output.split("\t"))


def metapackage(package: Path, name: str, what: str, target: Path) -> None:
    """Write an empty package that requires exactly one that is there.

    Args:
        package: which it requires.
        name: of the metapackage.
        what: it stands for.

    Raises:
        WorkError: the package cannot be read.
    """
    found = read_label(package)
    spec = _spec_of(
        name,
        found.version,
        found.revision,
        summary=f"{what} that mepof published",
        description="It requires that package, and changes whenever a newer one is published.",
        fields=f"Requires: {found.name} = {found.version}-{found.revision}",
        scripts="",
        files="",
    )
    _build(spec, {}, found.arch, target)


def package_version(version: str) -> str:
    """The version of a package: a release candidate comes before its release."""
    upstream = re.sub(r"-(?=rc[0-9])", "~", version)
    return re.sub(r"[^A-Za-z0-9._+~]", ".", upstream)


def _directory(kernel: Kernel) -> str:
    return f"lib/modules/{kernel.release}"


def _sources(kernel: Kernel) -> str:
    return f"usr/src/kernels/{kernel.release}"


def _boot_trees(kernel: Kernel) -> str:
    return f"boot/dtb-{kernel.release}"


def _headers(kernel: Kernel) -> Iterator[tuple[str, Content]]:
    yield from unpacked(kernel.build / HEADERS, _sources(kernel))
    yield f"{_directory(kernel)}/build", Link(f"/{_sources(kernel)}")


def _ghosts(kernel: Kernel) -> Iterator[tuple[str, Content]]:
    """What the scripts make, and belongs to the package."""
    for name in ("vmlinuz", "System.map", "config"):
        yield f"boot/{name}-{kernel.release}", b""
    if kernel.modules:
        for name in _TABLES:
            yield f"{_directory(kernel)}/modules.{name}", b""
    yield from unpacked(kernel.build / DEVICE_TREES, _boot_trees(kernel))


def _listed(
    kernel: Kernel, files: Mapping[str, Content], ghosts: Mapping[str, Content]
) -> Iterator[str]:
    """The package's files and directories; those that others have too are left out."""
    below, trees = _directory(kernel), f"{_boot_trees(kernel)}/"
    yield f"%dir /{below}"
    for name in sorted({name.removeprefix(f"{below}/").partition("/")[0] for name in files}):
        yield f"/{below}/{name}"
    for name in sorted({trees if name.startswith(trees) else name for name in ghosts}):
        yield f"%ghost /{name}"


def _spec(kernel: Kernel, kind: str, **parts: str) -> str:
    """A spec file, but for the directory with the files."""
    version = package_version(kernel.version)
    return _spec_of(f"{kind}-{kernel.release}", version, str(kernel.revision), **parts)


def _spec_of(name: str, version: str, revision: str, **parts: str) -> str:
    made = {"name": name, "version": version, "revision": revision, "packager": MAINTAINER}
    return _SPEC.format(**made, staged="%{staged}", **parts)


def _build(spec: str, files: Mapping[str, Content], cpu: str, target: Path) -> None:
    with TemporaryDirectory(prefix="mepof-", dir=_SCRATCH) as scratch:
        work = Path(scratch)
        _stage(files, work / "staged")
        (work / "made.spec").write_text(spec, encoding="utf-8")
        macros = _MACROS | {
            "_topdir": str(work),
            "_tmppath": str(work),
            "_rpmdir": str(work),
            "staged": str(work / "staged"),
        }
        done = run(
            [
                *(find_tool(_PROGRAM, f"apt-get install {_PACKAGE}"), "-bb", "--quiet"),
                *_OWN_SETTINGS,
                *("--target", f"{cpu}-linux"),
                *(w for name, text in macros.items() for w in ("--define", f"{name} {text}")),
                work / "made.spec",
            ],
            env={"SOURCE_DATE_EPOCH": str(TIME), "LC_ALL": "C"},
            check=False,
        )
        if done.status != 0:
            # Its last line is about what it did before.
            lines = [line for line in done.output.splitlines() if not line.startswith(_PROGRESS)]
            raise WorkError(f"{_PROGRAM} cannot write {target.name}: {lines[0] if lines else ''}")
        shutil.copyfile(work / "made.rpm", target)


def _stage(files: Mapping[str, Content], root: Path) -> None:
    """Write files below a directory, all of one time."""
    root.mkdir()
    for name, given in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(given, Link):
            path.symlink_to(given.to)
        else:
            path.write_bytes(data_of(given))
            path.chmod(mode_of(given))
    for name in directories(files):
        (root / name).chmod(0o755)
    # A directory changes with what is written into it.
    for path in sorted((root, *root.rglob("*")), reverse=True):
        os.utime(path, (TIME, TIME), follow_symlinks=False)


FORMAT = RpmPackage()
