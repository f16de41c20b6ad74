"""``mepof profile`` as tests call it, and the small program whose profiles they are."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mepof.cli.main import app
from mepof.errors import MepofError

SOURCE = """
__attribute__((noinline)) int hot(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        if (i & 1) sum += i; else sum ^= i;
    return sum;
}
int main(int argc, char **argv) {
    int total = 0;
    for (int i = 0; i < 1000; i++) total += hot(argc + i);
    return total;
}
"""
CLANG = shutil.which("clang-22") or "clang"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["profile", *map(str, arguments)])


def done(*arguments: object) -> Any:
    """The JSON document of a verb that has to succeed."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def failed(*arguments: object) -> MepofError:
    result = run(*arguments)
    assert isinstance(result.exception, MepofError), (result.output, result.exception)
    return result.exception


def converted(program: Path, record: Path, to: str, output: Path, *more: object) -> Any:
    return done(
        *("convert", "--binary", program, "--input", record, "--space", "user"),
        *("--to", to, "-o", output, "--allow-poor", *more),
    )


def perf_script(recording: Path, fields: str) -> list[str]:
    """The lines that perf prints of a perf.data."""
    perf = shutil.which("perf")
    if perf is None:
        pytest.skip("perf is not installed")
    words = (perf, "script", "-i", str(recording), "-F", fields)
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
