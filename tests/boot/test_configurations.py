"""Each configuration that comes with mepof takes, by the Kconfig of a real kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof import arch
from mepof.adapter.configured import configured
from mepof.adapter.fit import check_fit
from mepof.kernel import kconfig
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


@pytest.mark.patient
@pytest.mark.parametrize(("built_for", "name"), _TAKEN)
def test_a_configuration_takes(built_for: str, name: str, source: Path) -> None:
    target = arch.get(built_for)
    toolchain = select(next(iter(target.toolchains), DEFAULT))
    below = kconfig.merge(kconfig.paths(name, built_for)).base_origin
    parts = [name] if below else ["slim", name]
    fit = check_fit(source, target, toolchain, parts, ())
    assert not (fit.reasons or fit.config)
    assert not configured(fit, source, target, toolchain, parts).config
