"""A test that lacks what tools/setup installs fails, and is not skipped, after setup."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SETTINGS = Path(__file__).parents[2] / "conftest.py"
FILE = "import pytest\npytest.importorskip('no_such_package')\n"
INSIDE = "import pytest\ndef test_it(): pytest.importorskip('no_such_package')\n"
TOOL = "import pytest\ndef test_it(): pytest.skip('fastboot is not installed')\n"
RIGHT = "import pytest\ndef test_it(): pytest.skip('no right to a network namespace')\n"


@pytest.mark.parametrize(("text", "fails"), [(FILE, 1), (INSIDE, 1), (TOOL, 1), (RIGHT, 0)])
@pytest.mark.parametrize("is_set_up", [False, True])
def test_what_is_not_installed_fails_after_setup(
    text: str, fails: bool, is_set_up: bool, tmp_path: Path
) -> None:
    shutil.copy(SETTINGS, tmp_path)
    (tmp_path / "test_it.py").write_text(text)
    wish = {"MEPOF_SETUP_TESTS": "1"} if is_set_up else {}
    environment = {key: value for key, value in os.environ.items() if key != "MEPOF_SETUP_TESTS"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path],
        cwd=tmp_path,
        env=environment | wish,
        capture_output=True,
        text=True,
        check=False,
    )
    failed = fails and is_set_up
    assert ("though MEPOF_SETUP_TESTS is set" in done.stdout) == failed, done.stdout
    assert ("1 skipped" in done.stdout) != failed, done.stdout
