"""The report's files: replaced atomically, and read back."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from mepof.described import first_error
from mepof.disk import replacing
from mepof.errors import InputError, StoreFull, WorkError
from mepof.measure.measurement import Evaluation
from mepof.report.csv import boots_csv, cases_csv, comparisons_csv, images_csv, means_csv
from mepof.report.html import render
from mepof.report.model import Report

JSON_NAME = "report.json"
HTML_NAME = "report.html"
_BOOTS_NAME = "boots.csv"

_TABLES = {
    "cases.csv": cases_csv,
    "means.csv": means_csv,
    "images.csv": images_csv,
    "comparisons.csv": comparisons_csv,
}

NAMES = (HTML_NAME, JSON_NAME, *_TABLES, _BOOTS_NAME)
"""The files of a report."""


def write_report(report: Report, directory: Path) -> None:
    """Write the files of a report, each atomically, except what each boot gave.

    The directory is created if necessary.

    Raises:
        StoreFull: no space is left.
        WorkError: the directory cannot be written.
    """
    with _writing(directory):
        _write(directory / HTML_NAME, render(report))
        for name, table in _TABLES.items():
            _write(directory / name, table(report))
        _write(directory / JSON_NAME, report.to_json())


def write_boots(evaluation: Evaluation, directory: Path) -> None:
    """Write what each boot gave, beside the files of :func:`write_report` and as these.

    Args:
        evaluation: with the names that the report has for images.
    """
    with _writing(directory):
        _write(directory / _BOOTS_NAME, boots_csv(evaluation))


@contextmanager
def _writing(directory: Path) -> Iterator[None]:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        kind = StoreFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else WorkError
        raise kind(f"cannot write the report to {directory}: {error.strerror}") from error


def read_report(directory: Path) -> Report:
    """Read the report that a run left in a directory.

    Raises:
        InputError: there is no report, or the file is not a report.
    """
    path = directory / JSON_NAME
    try:
        return Report.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror}", "name a directory given to `mepof run --out`"
        ) from error
    except ValidationError as error:
        raise InputError(f"{path} is not a report: {first_error(error)}") from error


def _write(path: Path, text: str) -> None:
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
