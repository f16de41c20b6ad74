"""``deb``: a Debian package ``linux-image-RELEASE``, with image, configuration, symbols, modules
and device trees, and ``linux-headers-RELEASE``, with which other modules are compiled. Their
scripts run the hooks of ``/etc/kernel`` as those of Debian's kernels do (Debian Linux Kernel
Handbook, "Maintainer scripts and hooks")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mepof.arch import Arch
from mepof.kernel.installed import DEVICE_TREES, HEADERS
from mepof.package import debian_archive
from mepof.package.contents import (
    MAINTAINER,
    Content,
    Link,
    check_arch,
    check_release,
    has_initrd,
    headers_beside,
    modules,
    unpacked,
)
from mepof.package.protocol import Kernel

_SCRIPT = """#!/bin/sh
set -e

release={release}
image=/boot/vmlinuz-{release}
export INITRD={initrd}

run_hooks() {{
    if [ -d "/etc/kernel/$1.d" ]; then
        DEB_MAINT_PARAMS="$parameters" run-parts --report --exit-on-error \\
            --arg="$release" --arg="$image" "/etc/kernel/$1.d"
    fi
}}

parameters="$*"
"""
# On an upgrade of the same release, only the hooks before and after installing it run.
_ACTIONS = {
    "preinst": """
case $1 in
install | upgrade) run_hooks preinst ;;
esac
""",
    "postinst": """
[ "$1" = configure ] || exit 0
{depmod}if command -v linux-update-symlinks >/dev/null; then
    if [ -n "$2" ]; then change=upgrade; else change=install; fi
    linux-update-symlinks "$change" "$release" "$image"
fi
run_hooks postinst
""",
    "prerm": """
[ "$1" = remove ] || exit 0
if command -v linux-check-removal >/dev/null; then
    linux-check-removal "$release"
fi
run_hooks prerm
""",
    "postrm": """
[ "$1" = remove ] || [ "$1" = purge ] || exit 0
if [ "$1" = remove ] && command -v linux-update-symlinks >/dev/null; then
    linux-update-symlinks remove "$release" "$image"
fi
run_hooks postrm
{forget}""",
}
# What compiles modules by itself, DKMS for example, then does so for this kernel.
_HEADERS_ACTION = """
[ "$1" = configure ] || exit 0
run_hooks header_postinst
"""
_DEPMOD = 'depmod -F "/boot/System.map-$release" "$release"\n'
# What depmod wrote belongs to no package.
_FORGET = """if [ -d "/lib/modules/$release" ]; then
    find "/lib/modules/$release" -maxdepth 1 -name 'modules.*' -type f -delete
    rmdir --ignore-fail-on-non-empty "/lib/modules/$release"
fi
"""
_COPYRIGHT = """This package contains Linux {version}, compiled by mepof from its source.

Copyright: Linus Torvalds and others; the source names them.

Linux is distributed under the GNU General Public License, version 2, as its file COPYING says:
on Debian systems, /usr/share/common-licenses/GPL-2.
"""


class DebianPackage:
    """A package for Debian and the distributions that are made of it."""

    suffix = "deb"
    beside = True
    takes_file = False
    has_modules = True
    of_source = False
    programs: tuple[tuple[str, str], ...] = ()

    def check(self, arch: Arch, given: Path | None) -> None:
        check_arch(arch, "Debian")

    def write(self, kernel: Kernel, given: Path | None, target: Path) -> None:
        self.check(kernel.arch, given)
        check_release(kernel.release)
        initrd = has_initrd(kernel)
        files = dict(_files(kernel))
        loads = bool(kernel.modules)
        head = _SCRIPT.format(release=kernel.release, initrd="Yes" if initrd else "No")
        scripts = {
            name: head
            + text.replace("{depmod}", _DEPMOD if loads else "").replace(
                "{forget}", _FORGET if loads else ""
            )
            for name, text in _ACTIONS.items()
        }
        debian_archive.write(target, _control(kernel, loads, initrd), scripts, files)
        if (kernel.build / HEADERS).is_file():
            debian_archive.write(
                headers_beside(target),
                _headers_control(kernel),
                {"postinst": head + _HEADERS_ACTION},
                dict(_headers(kernel)),
            )


def package_name(release: str, kind: str = "image") -> str:
    """The name of a package of a release: Debian's have no capitals and no ``_``."""
    return f"linux-{kind}-{release.lower().replace('_', '-')}"


def package_version(version: str, revision: int) -> str:
    """The version of a package: a release candidate comes before its release."""
    upstream = re.sub(r"-(?=rc[0-9])", "~", version)
    return f"{re.sub(r'[^A-Za-z0-9.+~-]', '.', upstream)}-{revision}"


def metapackage(package: Path, name: str, what: str, target: Path) -> None:
    """Write an empty package that depends on exactly one that is there.

    Args:
        package: on which it depends.
        name: of the metapackage.
        what: it stands for.

    Raises:
        WorkError: the package cannot be read.
    """
    found = debian_archive.fields(debian_archive.read_control(package))
    control = _control_file(
        {
            "Package": name,
            "Version": found["Version"],
            "Architecture": found["Architecture"],
            "Maintainer": MAINTAINER,
            "Depends": f"{found['Package']} (= {found['Version']})",
            "Section": "metapackages",
            "Priority": "optional",
            "Description": f"{what} that mepof published\n"
            " It depends on that package, and changes whenever a newer one is published.",
        }
    )
    debian_archive.write(target, control, {}, {})


def _control(kernel: Kernel, modules: bool, initrd: bool) -> str:
    assert kernel.arch.debian is not None
    fields = {
        "Package": package_name(kernel.release),
        "Version": package_version(kernel.version, kernel.revision),
        "Architecture": kernel.arch.debian,
        "Maintainer": MAINTAINER,
        "Depends": "kmod" if modules else "",
        "Recommends": "initramfs-tools | linux-initramfs-tool" if initrd else "",
        "Provides": "linux-image",
        "Section": "kernel",
        "Priority": "optional",
        "Description": f"Linux {kernel.release}\n Built by mepof with {kernel.compiler}.",
    }
    return _control_file(fields)


def _headers_control(kernel: Kernel) -> str:
    assert kernel.arch.debian is not None
    fields = {
        "Package": package_name(kernel.release, "headers"),
        "Version": package_version(kernel.version, kernel.revision),
        "Architecture": kernel.arch.debian,
        "Maintainer": MAINTAINER,
        # Libraries of the programs in it, and what compiled the kernel: it compiles the modules.
        "Depends": ", ".join(("libc6", "libelf1", *kernel.compilers)),
        "Provides": "linux-headers",
        "Section": "kernel",
        "Priority": "optional",
        "Description": f"headers of Linux {kernel.release}\n"
        f" With these, modules are compiled for it, by {kernel.compiler}.",
    }
    return _control_file(fields)


def _control_file(fields: dict[str, str]) -> str:
    return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)


def _files(kernel: Kernel) -> Iterator[tuple[str, Content]]:
    release = kernel.release
    yield f"boot/vmlinuz-{release}", kernel.image
    for name in ("config", "System.map"):
        yield f"boot/{name}-{release}", kernel.build / name
    yield from modules(kernel, f"lib/modules/{release}")
    yield from unpacked(kernel.build / DEVICE_TREES, f"usr/lib/linux-image-{release}")
    yield _copyright(kernel, package_name(release))


def _headers(kernel: Kernel) -> Iterator[tuple[str, Content]]:
    directory = f"usr/src/linux-headers-{kernel.release}"
    yield from unpacked(kernel.build / HEADERS, directory)
    yield f"lib/modules/{kernel.release}/build", Link(f"/{directory}")
    yield _copyright(kernel, package_name(kernel.release, "headers"))


def _copyright(kernel: Kernel, package: str) -> tuple[str, Content]:
    text = _COPYRIGHT.format(version=kernel.version)
    return f"usr/share/doc/{package}/copyright", text.encode()


FORMAT = DebianPackage()
