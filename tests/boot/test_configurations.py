"""Each configuration that comes with mepof takes, by the Kconfig of a real kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof import arch
from mepof.adapter.configured import configured
from mepof.adapter.fit import check_fit
from mepof.executor.local import LocalExecutor
from mepof.kernel import kconfig
from mepof.plan.model import Plan
from mepof.toolchain.named import DEFAULT, select

# Of another release than the quickstart's.
_LATER = {"rust-binder"}
_ARM64 = {"pages-16k", "pages-64k"}
_TAKEN = [
    (built_for, name)
    for built_for in ("x86-64", "arm64")
    for name in kconfig.names()
    if name not in _LATER and (built_for == "arm64" or name not in _ARM64)
]
_TAKEN += [("arm", name) for name in ("slim", "suites", "android", "modules")]


@pytest.fixture(scope="module")
def tree(executor: LocalExecutor, plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quickstart's source."""
    only = Plan(plan.program, plan.seed, (plan.step("source"),), ())
    out = tmp_path_factory.mktemp("source")
    return executor.run(only, out, lambda event: None).run.steps["source"].path


@pytest.mark.patient
@pytest.mark.parametrize(("built_for", "name"), _TAKEN)
def test_a_configuration_takes(built_for: str, name: str, tree: Path) -> None:
    target = arch.get(built_for)
    toolchain = select(next(iter(target.toolchains), DEFAULT))
    below = kconfig.merge(kconfig.paths(name, built_for)).base_origin
    parts = [name] if below else ["slim", name]
    fit = check_fit(tree, target, toolchain, parts, ())
    assert not (fit.reasons or fit.config)
    assert not configured(fit, tree, target, toolchain, parts).config
