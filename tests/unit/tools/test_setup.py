"""tools/setup with fake package tools: what it installs, and what it leaves alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[3] / "tools" / "setup"
CLANG = ("clang-22", "lld-22", "llvm-22", "libclang-rt-22-dev")
OTHERS = (
    *(
        "gcc",
        "g++",
        "llvm-22-dev",
        "make",
        "libc6-dev",
        "flex",
        "bison",
        "bc",
        "libelf-dev",
        "libssl-dev",
        "cpio",
    ),
    *("xz-utils", "zstd", "lz4", "rsync", "ccache", "musl-tools", "busybox-static"),
    *("libsqlite3-dev", "e2fsprogs", "linux-source-6.12"),
)
TOOLS = ("default-jdk-headless", "fio", "iperf3", "rt-tests", "stress-ng", "sysbench")
ARM64 = ("gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross")
RUST = ("rustc-web", "cargo-web", "rust-web-clippy", "rustfmt-web")
# An incomplete 30: it has no linker.
OFFERED = (
    *RUST,
    *("clang-16", "lld-16", "llvm-16", "libclang-rt-16-dev", *CLANG, "clang-30", "llvm-30"),
)
MIRROR = "mirror.invalid/debian/"


@dataclass(frozen=True)
class Machine:
    """A directory that stands for a Debian machine."""

    root: Path

    @property
    def backports(self) -> Path:
        return self.root / "etc/apt/sources.list.d/mepof-backports.sources"

    def program(self, name: str, body: str) -> None:
        path = self.root / "bin" / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def installed(self, packages: Iterable[str], qemu: str | None) -> None:
        lines = [f"{name} 1.0" for name in packages]
        if qemu is not None:
            lines.append(f"qemu-system-x86 {qemu}")
        (self.root / "installed").write_text("\n".join(lines) + "\n")

    def rust(self, version: str | None) -> None:
        """A Rust on PATH of this version; None for rustup without a toolchain."""
        for name in ("cargo", "rustc"):
            said = f"echo '{name} {version} (c980f4866 2026-01-01)'" if version else "exit 1"
            self.program(name, said)

    def calls(self) -> list[str]:
        """The calls of apt-get that change something."""
        log = self.root / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def setup(self, **wishes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SETUP, "packages"],
            env={
                **wishes,
                "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
                "MEPOF_SETUP_ETC": str(self.root / "etc"),
                "M": str(self.root),
            },
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Debian 12 with everything that is needed; root runs the script."""
    made = Machine(tmp_path)
    (tmp_path / "bin").mkdir()
    made.backports.parent.mkdir(parents=True)
    (tmp_path / "etc/os-release").write_text(
        'ID=debian\nVERSION_CODENAME=bookworm\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'
    )
    made.installed((*CLANG, *OTHERS), "1:10.0.2")
    made.rust("1.85.0")
    names = "\\n".join(OFFERED)
    made.program("id", "echo 0")
    made.program(
        "apt-cache",
        f"""case $1 in
        pkgnames) printf '{names}\\n' ;;
        depends) printf 'gcc\\n  Depends: cpp\\n  Depends: gcc-12\\n  Suggests: make\\n' ;;
        madison) echo 'qemu-system-x86 | 1:7.2+dfsg | suite'
                 if [ -e "$M/etc/apt/sources.list.d/mepof-backports.sources" ]; then
                     echo 'qemu-system-x86 | 1:10.0.2 | suite'
                 fi ;;
        esac""",
    )
    made.program(
        "apt-get",
        f"""case $1 in
        indextargets)
            case "$*" in
            *'Codename: bookworm-backports')
                [ ! -e "$M/etc/apt/sources.list.d/mepof-backports.sources" ] || echo x ;;
            *'Codename: bookworm') echo {MIRROR}; echo {MIRROR} ;;
            esac ;;
        *) echo "$*" >>"$M/calls" ;;
        esac""",
    )
    made.program(
        "dpkg-query",
        """case "$*" in
        *Version*) for package; do :; done; sed -n "s/^$package /installed /p" "$M/installed" ;;
        *) sed 's/ .*//; s/^/installed /' "$M/installed" ;;
        esac""",
    )
    return made


def test_nothing_is_done_if_nothing_is_missing(machine: Machine) -> None:
    done = machine.setup()
    assert done.returncode == 0, done.stderr
    assert done.stdout == "setup: system packages: all installed (Clang 22)\n"
    assert machine.calls() == []


def test_only_what_is_missing_is_installed(machine: Machine) -> None:
    machine.installed(set(CLANG + OTHERS) - {"bc", "lld-22"}, "1:10.0.2")
    done = machine.setup()
    assert done.returncode == 0, done.stderr
    assert machine.calls() == [
        "update --quiet",
        "install --yes --quiet --no-install-recommends bc lld-22",
    ]


def test_an_old_qemu_is_replaced_from_the_backports_of_the_machines_own_mirror(
    machine: Machine,
) -> None:
    machine.installed((*CLANG, *OTHERS), "1:7.2+dfsg")
    done = machine.setup()
    assert done.returncode == 0, done.stderr
    source = machine.backports.read_text().splitlines()
    assert source[:4] == [
        "Types: deb",
        f"URIs: {MIRROR}",
        "Suites: bookworm-backports",
        "Components: main",
    ]
    assert machine.calls() == [
        "update --quiet",
        "update --quiet",
        "install --yes --quiet --no-install-recommends -t bookworm-backports qemu-system-x86",
    ]


def test_what_arm64_needs_is_installed_on_demand(machine: Machine) -> None:
    done = machine.setup(MEPOF_SETUP_ARM64="1")
    assert done.returncode == 0, done.stderr
    assert machine.calls() == [
        "update --quiet",
        "update --quiet",
        "install --yes --quiet --no-install-recommends " + " ".join(ARM64),
        "install --yes --quiet --no-install-recommends -t bookworm-backports qemu-system-arm",
    ]


def test_on_arm64_guests_of_x86_64_are_the_crossed_ones(machine: Machine) -> None:
    machine.program("uname", "echo aarch64")
    done = machine.setup(MEPOF_SETUP_ARM64="1", MEPOF_SETUP_GCC="1")
    assert done.returncode == 0, done.stderr
    wanted = {"gcc-x86-64-linux-gnu", "libc6-dev-amd64-cross", "gcc-12-plugin-dev-x86-64-linux-gnu"}
    installed = {word for call in machine.calls() for word in call.split()}
    assert wanted <= installed
    assert not any("aarch64" in word or "arm64" in word for word in installed)


def test_what_gccs_plug_ins_need_is_installed_on_demand(machine: Machine) -> None:
    done = machine.setup(MEPOF_SETUP_GCC="1")
    assert done.returncode == 0, done.stderr
    assert machine.calls()[-1].split()[4:] == ["gcc-12-plugin-dev"]
    done = machine.setup(MEPOF_SETUP_GCC="1", MEPOF_SETUP_ARM64="1", MEPOF_SETUP_ARM="1")
    assert done.returncode == 0, done.stderr
    wanted = {
        f"gcc-12-plugin-dev{each}" for each in ("", "-aarch64-linux-gnu", "-arm-linux-gnueabi")
    }
    assert wanted <= {word for call in machine.calls() for word in call.split()}


def test_androids_tools_for_the_tests_come_from_backports(machine: Machine) -> None:
    machine.installed((*CLANG, *OTHERS, "mkbootimg", "fastboot"), "1:10.0.2")
    machine.program("systemctl", 'echo "$*" >>"$M/calls"')
    done = machine.setup(MEPOF_SETUP_TESTS="1")
    assert done.returncode == 0, done.stderr
    newer = "-t bookworm-backports qemu-system-arm mkbootimg adb adbd fastboot"
    assert "mask --quiet adbd.service" in machine.calls()
    assert machine.calls()[-1] == f"install --yes --quiet --no-install-recommends {newer}"


def test_every_release_has_the_kernel_source_that_the_tests_use(machine: Machine) -> None:
    machine.installed((*CLANG, *(set(OTHERS) - {"linux-source-6.12"})), "1:10.0.2")
    assert machine.setup(MEPOF_SETUP_TESTS="1").returncode == 0
    words = {word for call in machine.calls() for word in call.split()}
    # Debian 12 alone has Linux 6.1.
    assert [word for word in words if word.startswith("linux-source")] == ["linux-source-6.12"]


def test_the_tests_and_the_container_have_what_fetches_and_verifies_sources(
    machine: Machine,
) -> None:
    sources = {"bzip2", "curl", "git", "gpgv"}  # Debian 13 has none of them by default
    assert machine.setup(MEPOF_SETUP_TESTS="1").returncode == 0
    assert sources | {"dpkg-dev", "gnupg"} <= {w for call in machine.calls() for w in call.split()}
    container = (SETUP.parents[1] / "Containerfile").read_text()
    assert sources | {"gpg"} <= set(container.split())


def test_public_tools_are_installed_on_demand(machine: Machine) -> None:
    done = machine.setup(MEPOF_SETUP_TOOLS="1")
    assert done.returncode == 0, done.stderr
    assert machine.calls() == [
        "update --quiet",
        "install --yes --quiet --no-install-recommends " + " ".join(TOOLS),
    ]


def test_a_browser_is_installed_on_demand(machine: Machine) -> None:
    machine.program("npm", "true")
    done = machine.setup(MEPOF_SETUP_BROWSER="1")
    assert done.returncode == 0, done.stderr
    assert machine.calls()[-1] == "install --yes --quiet --no-install-recommends chromium"


def test_a_user_gets_the_command_for_root(machine: Machine) -> None:
    machine.program("id", "echo 1000")
    machine.installed(set(CLANG + OTHERS) - {"bc", "flex"}, None)
    done = machine.setup()
    assert done.returncode == 3
    assert "apt-get install --no-install-recommends bc flex" in done.stderr
    assert machine.calls() == []
    assert not machine.backports.exists()


def test_a_clang_that_is_too_old_is_reported(machine: Machine) -> None:
    machine.installed(OTHERS, "1:10.0.2")
    machine.program("apt-cache", "printf 'clang-16\\nlld-16\\nllvm-16\\nlibclang-rt-16-dev\\n'")
    done = machine.setup()
    assert done.returncode == 3
    assert "apt offers no Clang 19 or newer" in done.stderr


def test_another_distribution_is_left_to_its_user(machine: Machine) -> None:
    (machine.root / "etc/os-release").write_text('ID=fedora\nPRETTY_NAME="Fedora Linux 42"\n')
    done = machine.setup()
    assert done.returncode == 0
    assert "Fedora Linux 42" in done.stdout
    assert machine.calls() == []


@pytest.mark.parametrize("version", ["1.63.0", "1.84.1", None])
def test_a_rust_that_is_too_old_is_replaced_by_the_current_one(
    machine: Machine, version: str | None
) -> None:
    machine.rust(version)
    done = machine.setup()
    assert done.returncode == 0, done.stderr
    assert machine.calls() == [
        "update --quiet",
        "install --yes --quiet --no-install-recommends " + " ".join(sorted(RUST)),
    ]


@pytest.mark.parametrize("version", ["1.85.0", "1.100.0", "2.0.0-nightly"])
def test_a_rust_from_elsewhere_suffices(machine: Machine, version: str) -> None:
    machine.rust(version)
    assert machine.setup().stdout == "setup: system packages: all installed (Clang 22)\n"
    assert machine.calls() == []
