"""Builds of kernels that are rewritten after their link, on a kernel in miniature."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mepof import arch
from mepof.errors import InputError, WorkError
from mepof.kernel import code_tables, rewriting
from mepof.kernel.build_spec import Rewriting
from mepof.kernel.description import BuildDescription
from mepof.kernel.rewriting import Rewritten

from .conftest import SPEC, Bench


def rewriting_of(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> tuple[Rewriting, list[Any]]:
    """How a kernel is rewritten: a byte is added. And what it was rewritten for, in order."""
    asked: list[Any] = []

    def rewrite(
        program: str,
        vmlinux: Path,
        counts: Path,
        candidates: frozenset[str],
        output: Path,
        *rest: object,
    ) -> Rewritten:
        asked.append((program, counts.name, sorted(candidates)))
        output.write_bytes(vmlinux.read_bytes() + b"!")
        return Rewritten(functions=len(candidates), alone=1)

    monkeypatch.setattr(rewriting, "rewrite", rewrite)
    counts = bench.root / "kernel.fdata"
    counts.write_text("")
    return Rewriting(counts), asked


def test_the_image_is_made_of_the_rewritten_kernel(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    how, asked = rewriting_of(bench, monkeypatch)
    linked = (bench.build(name="plain") / "vmlinux").read_bytes()
    # The second attempt begins with the kernel as it was linked.
    for _ in range(2):
        output = bench.build(spec=replace(SPEC, rewriting=how))
        assert (output / "vmlinux").read_bytes() == linked + b"!"
        assert (output / "kernel").read_bytes().startswith(linked + b"!")
    assert asked == [("llvm-bolt-22", "kernel.fdata", ["start", "stop", "work"])] * 2
    assert BuildDescription.read(output).rewritten == Rewritten(functions=3, alone=1)


@pytest.mark.parametrize(
    ("files", "functions", "candidates"),
    [
        (("kernel/b.o",), frozenset({"stop"}), ["start"]),
        ((), frozenset({"work"}), ["start", "stop"]),
        (("%",), frozenset(), None),
    ],
)
def test_spared_functions_are_left_alone(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    files: tuple[str, ...],
    functions: frozenset[str],
    candidates: list[str] | None,
) -> None:
    how, asked = rewriting_of(bench, monkeypatch)
    spared = replace(how, files=files, functions=functions)
    linked = (bench.build(name="plain") / "vmlinux").read_bytes()
    bench.build(spec=replace(SPEC, rewriting=how))
    output = bench.build(spec=replace(SPEC, rewriting=spared))
    assert [names for *_, names in asked[1:]] == ([] if candidates is None else [candidates])
    assert (output / "vmlinux").read_bytes() == linked + (b"" if candidates is None else b"!")


def test_a_kernel_that_cannot_be_rewritten_is_refused_before_it_is_compiled(bench: Bench) -> None:
    spec = replace(SPEC, arch=arch.get("arm64"), rewriting=Rewriting(None))
    with pytest.raises(InputError, match="BOLT rewrites kernels for x86-64 only"):
        bench.build(spec=spec)
    assert bench.seen == []


def test_a_release_that_cannot_be_rewritten_is_refused_before_it_is_configured(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_tables, "LAST", (6, 11))
    with pytest.raises(InputError, match=r"the tables of Linux 6\.12\.7 .* Linux 6\.1 to 6\.11"):
        bench.build(spec=replace(SPEC, rewriting=Rewriting(None)))
    assert not (bench.paths().work / "tree").exists()


def test_a_kernel_that_will_be_rewritten_must_have_the_space(bench: Bench) -> None:
    with pytest.raises(WorkError, match="no space for what BOLT moves"):
        bench.build(spec=replace(SPEC, rewriting=Rewriting(None)))
