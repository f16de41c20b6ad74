"""Check a report in a browser: its width, tables on a phone, accessibility, and screenshots.

make check-report [REPORT=out/demo]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mepof.errors import InputError, MepofError

from .accessible import LOOKS, problems
from .chromium import browser, page_url

_PICTURE_HEIGHT = 1075


def check(report: Path, axe: str, out: Path, picture: Path | None) -> list[str]:
    """The problems of a report; screenshots and the print stay in ``out``."""
    wrong: list[str] = []
    out.mkdir(parents=True, exist_ok=True)
    with browser() as page:
        for width, scheme in LOOKS:
            page.look(width, scheme)
            page.open(page_url(report))
            page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            name = f"{width}-{scheme}"
            wrong += [f"{name}: {problem}" for problem in problems(page, width, axe)]
            page.open(page_url(report))
            (out / f"{name}.png").write_bytes(page.screenshot())
        page.look(1280, "light")
        page.open(page_url(report))
        (out / "print.pdf").write_bytes(page.pdf())
        if picture is not None:
            page.look(960, "light")
            picture.write_bytes(page.screenshot(_PICTURE_HEIGHT))
    return wrong


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", nargs="+", type=Path, help="directories that hold report.html")
    parser.add_argument("--axe", type=Path, required=True, help="axe.min.js")
    parser.add_argument("--out", type=Path, required=True, help="where screenshots go")
    parser.add_argument("--picture", type=Path, help="a picture of the first report's top")
    given = parser.parse_args()
    wrong: list[str] = []
    try:
        axe = given.axe.read_text(encoding="utf-8")
        for number, directory in enumerate(given.reports):
            report = directory / "report.html"
            if not report.is_file():
                raise InputError(f"there is no {report}")
            print(report, file=sys.stderr)
            picture = given.picture if number == 0 else None
            out = given.out / f"{number}-{directory.name}"
            wrong += [f"{report}: {p}" for p in check(report, axe, out, picture)]
    except (MepofError, OSError) as error:
        print(error, file=sys.stderr)
        return 3
    print("\n".join(wrong) or f"no problem found; screenshots are in {given.out}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
