"""Plugins are loaded by each QEMU, whatever version of the plugin interface it has."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mepof.kernel.overlay import native_directory

HERE = Path(__file__).parent
CALLS = [
    "vCPU 3 of 42 begins",
    "42 translates 0xb10c",
    "42 is reset",
    "42 ends with a word",
]


@pytest.mark.parametrize("version", [4, 7])
def test_callbacks_get_what_those_of_version_4_get(tmp_path: Path, version: int) -> None:
    plugins, host, plugin = native_directory() / "tcg-plugin", tmp_path / "host", tmp_path / "a.so"
    flags = ["-std=c17", "-Wall", "-Wextra", "-Werror", "-O2", "-fvisibility=hidden"]
    compile_plugin = ["gcc", *flags, "-fPIC", "-shared", f"-I{plugins}", "-o", str(plugin)]
    subprocess.run(
        [*compile_plugin, str(HERE / "plugin_interface.c"), str(plugins / "qemu_plugin_api.c")],
        check=True,
    )
    compile_host = ["gcc", "-std=gnu17", "-O2", f"-DINTERFACE={version}", "-rdynamic", "-o"]
    subprocess.run([*compile_host, str(host), str(HERE / "plugin_interface_host.c")], check=True)
    done = subprocess.run([host, plugin], check=True, capture_output=True, text=True, timeout=20)
    assert done.stdout.splitlines() == [f"version {version}", *CALLS]
