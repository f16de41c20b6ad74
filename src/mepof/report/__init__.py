"""The report: one model, written as JSON, as a page and as a summary on the terminal."""

from mepof.report.build import build_report
from mepof.report.detail import Instrumented, ProfileQuality, Training
from mepof.report.files import read_report, write_boots, write_report
from mepof.report.model import Phase, ProfileSummary, Provenance, Report
from mepof.report.terminal import summary

__all__ = [
    "Instrumented",
    "Phase",
    "ProfileQuality",
    "ProfileSummary",
    "Provenance",
    "Report",
    "Training",
    "build_report",
    "read_report",
    "summary",
    "write_boots",
    "write_report",
]
