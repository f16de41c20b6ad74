"""Each configuration that comes with mepof takes, by the Kconfig of each release of the matrix."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from mepof import arch
from mepof.adapter.configured import configured
from mepof.adapter.fit import check_fit
from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.kernel import kconfig
from mepof.toolchain.named import DEFAULT, select

from .conftest import fetched

_KERNELS: Mapping[str, str] = tomllib.loads(
    (Path(__file__).parents[2] / "bench" / "matrix.toml").read_text()
)["kernels"]
# The first release of those that docs/configs.md says not to fit every one.
_FIRST = {"rt": (6, 12), "gki/arm64": (5, 11)}
_NEEDS_RUST = {"rust-binder"}
_ARM64 = {"pages-16k", "pages-64k"}
_ALL = [
    (built_for, name)
    for built_for in ("x86-64", "arm64")
    for name in kconfig.names()
    if name not in _NEEDS_RUST and (built_for == "arm64" or name not in _ARM64)
]
_ALL += [("arm", name) for name in ("slim", "suites", "android", "modules")]


@pytest.fixture(scope="session", params=_KERNELS)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def tree(release: str, executor: LocalExecutor, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release's source tree, fetched when the store lacks it."""
    plan = plan_of(Source("release.g4", f"build {_KERNELS[release]}."))
    return fetched(executor, plan, tmp_path_factory.mktemp("source"))


@pytest.mark.patient
@pytest.mark.parametrize(("built_for", "name"), _ALL)
def test_a_configuration_takes(release: str, tree: Path, built_for: str, name: str) -> None:
    first = _FIRST.get(name, _FIRST.get(f"{name}/{built_for}", ()))
    if tuple(map(int, release.split("."))) < first:
        pytest.skip(f"for Linux {'.'.join(map(str, first))} and later")
    target = arch.get(built_for)
    toolchain = select(next(iter(target.toolchains), DEFAULT))
    below = kconfig.merge(kconfig.paths(name, built_for)).base_origin
    parts = [name] if below else ["slim", name]
    fit = check_fit(tree, target, toolchain, parts, ())
    assert not (fit.reasons or fit.config)
    assert not configured(fit, tree, target, toolchain, parts).config
