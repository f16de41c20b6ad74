"""What the tests of G4 share: a vocabulary, and the way from text to errors."""

from __future__ import annotations

from mepof.g4 import Diagnostic, Source, Vocabulary, check, parse, render
from mepof.g4.ast import Program

VOCABULARY = Vocabulary(
    algorithms=("autofdo", "bolt", "cspgo", "pgo", "propeller"),
    clicks=("manual", "rand", "script", "trav"),
    apps=("kbench", "com.android.settings"),
    options=("FullLTO", "O2", "O3", "Os", "ThinLTO"),
    metrics=("file", "overhead", "pipe", "proc", "syscall"),
    architectures=("arm64", "x86-64"),
    toolchains=("clang", "gcc"),
    devices=("adb", "fastboot", "qemu"),
    configs=("android", "server", "slim"),
    untrained=("mepof", "syscall", "pipe", "pipe128", "proc"),
    cores=("cortex-a76", "zen4"),
)


def source(text: str) -> Source:
    return Source("p.g4", text)


def errors(text: str) -> list[Diagnostic]:
    """Everything that is wrong with a program, as a command would find it."""
    result = parse(source(text))
    return [*result.diagnostics, *check(result.program, VOCABULARY)]


def headlines(text: str) -> list[str]:
    """The first line of every rendered diagnostic."""
    return [line for line in render(errors(text), source(text)).splitlines() if ": error: " in line]


def sound(text: str) -> Program:
    """The program of a text without errors."""
    assert headlines(text) == []
    return parse(source(text)).program
