"""Suites on kernels whose configuration does not have what they need."""

from __future__ import annotations

import pytest

from mepof.g4 import render
from mepof.g4.lacking import lacking, unbootable

from .reading import VOCABULARY, sound, source

KERNEL = "debian:linux-source-6.12"


def warnings(text: str) -> list[str]:
    program = sound(text)
    found = [*lacking(program, VOCABULARY), *unbootable(program, VOCABULARY)]
    rendered = render(found, source(text), kind="warning")
    return [line.strip() for line in rendered.splitlines() if "warning: " in line or "help" in line]


def test_training_on_a_suite_that_the_configuration_lacks() -> None:
    assert warnings(f"opt {KERNEL} pgo trav kload;mepof O2.") == [
        f"p.g4:1:{len(KERNEL) + 15}: warning: not every case of `kload` can run on a kernel of "
        "`set config slim`",
        "help: write `set config kload` before the statement that builds it",
    ]


@pytest.mark.parametrize("metric", ["binder", "input", "sqlite", "network", "ipc", "jni", "tools"])
def test_measuring_a_suite_on_an_image_of_a_configuration_that_lacks_it(metric: str) -> None:
    (first, remedy) = warnings(f"build {KERNEL}. set config suites. eval build;plain {metric}.")
    assert f"not every case of `{metric}` can run" in first
    assert "`set config suites`" in remedy


def test_a_remedy_keeps_what_else_the_configuration_has() -> None:
    (_, remedy) = warnings(f"set config slim+mitigations. build {KERNEL}. eval build sqlite.")
    assert remedy == (
        "help: write `set config suites+mitigations` before the statement that builds it"
    )


@pytest.mark.parametrize(
    "text",
    [
        f"set config suites. build {KERNEL}. set config slim. eval build sqlite;syscall.",
        f"set config modules. opt {KERNEL} pgo rand sqlite;network. eval plain;opt sqlite.",
        f"set config suites+kload. build {KERNEL}. eval build kload;binder.",
        f"set config slim+android. opt {KERNEL} pgo rand binder. eval plain;opt binder.",
        f"set config server. build {KERNEL}. eval build network.",
        f"set config slim+./mine.config. opt {KERNEL} pgo rand kload. eval plain;opt kload.",
        f"set without binder. opt {KERNEL} pgo rand binder;kbench.",
        f"opt {KERNEL} pgo rand kbench;threads:2;./app.toml. eval plain;opt pipe;pages.",
        "eval ./a.img;./b.img kload.",
    ],
)
def test_what_may_well_run_is_no_warning(text: str) -> None:
    assert warnings(text) == []


def test_a_setting_above_the_statement_that_builds_counts() -> None:
    text = (
        f"build {KERNEL}. set config suites. set name all. build {KERNEL}. eval build;all sqlite."
    )
    assert len(warnings(text)) == 2


@pytest.mark.parametrize("form", ["deb", "rpm", "pkg"])
def test_packaging_a_kernel_that_boots_no_ordinary_machine(form: str) -> None:
    assert warnings(f"set package {form}. build {KERNEL}. opt {KERNEL} pgo rand kbench.") == [
        "p.g4:1:13: warning: the package has a kernel of `set config slim`, which boots no "
        "ordinary machine: it has no PCI and no ACPI",
        "help: write `set config server`, or name your machine's configuration as in "
        "`set config /boot/config-6.12`, before the statement that builds it",
    ]


@pytest.mark.parametrize(
    "config", ["android", "suites", "kload", "modules", "slim+kunit", "slim+mitigations"]
)
def test_packaging_what_lies_over_the_smallest_kernel(config: str) -> None:
    (warning, _) = warnings(f"set config {config}. set package deb. build {KERNEL}.")
    assert f"of `set config {config}`, which boots no ordinary machine" in warning


@pytest.mark.parametrize(
    "text",
    [
        f"set package deb. set config server. build {KERNEL}.",
        f"set package deb. set config server+kunit. build {KERNEL}.",
        f"set package rpm. set config /boot/config-6.12. build {KERNEL}.",
        f"set package pkg. set config slim+./my.config. build {KERNEL}.",
        f"set package deb. set package none. build {KERNEL}.",
        f"set package bootimg. build {KERNEL}.",
        f"set package deb. profile {KERNEL} pgo rand kbench.",
        f"build {KERNEL}. set package deb. set config server. set name s. build {KERNEL}.",
    ],
)
def test_packages_that_may_well_boot_are_no_warning(text: str) -> None:
    assert warnings(text) == []
