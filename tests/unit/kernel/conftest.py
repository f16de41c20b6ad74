"""A kernel in miniature, and what builds it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest
from writers.mini_kernel import SUFFIX, tools_alone, write_tree

from mepof import arch
from mepof.kernel import kbuild
from mepof.kernel.build_spec import BuildPaths, BuildSpec
from mepof.process import run
from mepof.toolchain.named import select
from mepof.toolchain.protocol import Tools

SPEC = BuildSpec(arch=arch.get("x86-64"), fragments=(), cflags=("-O3", "-fmini"))


@dataclass
class Bench:
    """A tree, a toolchain and the paths of builds; ``seen`` has the progress of the last."""

    root: Path
    tree: Path
    seen: list[tuple[int, int | None, str]] = field(default_factory=list)

    def paths(self, name: str = "one") -> BuildPaths:
        made = self.root / name
        (made / "output").mkdir(parents=True, exist_ok=True)
        return BuildPaths(
            self.tree, made / "work", made / "output", made / "log", self.root / "cache"
        )

    def fragment(self, *lines: str) -> Path:
        path = self.root / "mini.config"
        path.write_text("\n".join(("# base: allnoconfig", *lines)) + "\n")
        return path

    def build(
        self,
        *lines: str,
        spec: BuildSpec = SPEC,
        name: str = "one",
        cancel: threading.Event | None = None,
        told: Callable[[str], None] = lambda file: None,
    ) -> Path:
        """Build with a fragment of these lines; the output directory."""
        paths = self.paths(name)
        self.seen.clear()

        def progress(done: int, total: int | None, file: str) -> None:
            self.seen.append((done, total, file))
            told(file)

        kbuild.build(
            replace(spec, fragments=(self.fragment(*lines), *spec.fragments)),
            Tools(select(f"clang{SUFFIX}"), partial(run, log=paths.log, cancel=cancel)),
            paths,
            1,
            progress,
        )
        return paths.output


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    # A build within a build: what the outer make leaves must not reach the inner one.
    monkeypatch.setenv("MAKEFLAGS", "n --jobserver-auth=3,4")
    with tools_alone(tmp_path / "tools", monkeypatch):
        yield Bench(tmp_path, write_tree(tmp_path / "tree"))
