"""Settings of all tests. That this file is here puts ``writers`` within every test's reach."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import settings

# No test depends on how busy the machine is. A merge is judged by the same examples every
# time; new ones are sought wherever people work.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


# A warning of the C is an error here. On a user's machine, a newer compiler may have more of them.
os.environ["MEPOF_STRICT"] = "1"

# How skips say that something is not installed: ours, and those of `pytest.importorskip`.
NOT_INSTALLED = ("installed", "could not import")


def fail_if_not_installed(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Fail a test or a file of tests that is skipped because something is not installed, where
    `tools/setup` has just installed what the tests need."""
    if report.skipped and os.environ.get("MEPOF_SETUP_TESTS"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if any(words in reason for words in NOT_INSTALLED):
            report.outcome = "failed"
            report.longrepr = f"{reason}, though MEPOF_SETUP_TESTS is set: run tools/setup"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fail_if_not_installed(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    fail_if_not_installed(report)
    return report
