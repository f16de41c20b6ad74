"""Check a report in a browser: its width, tables on a phone, accessibility, and screenshots.

    make check-report [REPORT=out/demo]

Accessibility is checked by all rules of axe-core (https://github.com/dequelabs/axe-core).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mepof.errors import InputError, MepofError

from .chromium import Page, browser, page_url

# The widths of a small laptop, a phone, and the narrowest screen in use.
LOOKS = [(w, s) for w in (1280, 390, 320) for s in ("light", "dark")]
_PICTURE_HEIGHT = 1075
_AXE = """
axe.run(document, {resultTypes: ['violations', 'incomplete']}).then(found => ({
  rules: found.passes.length,
  violations: found.violations.map(v => ({
    rule: v.id, impact: v.impact, help: v.help,
    where: v.nodes.slice(0, 5).map(n => n.target.join(' ') + ': ' + n.failureSummary)
  }))
}))
"""
_WIDE = "document.documentElement.scrollWidth"
# Tables stack below this width (report.css), so none may scroll sideways.
_PHONE = 640
_SCROLLING = """
[...document.querySelectorAll('.scroll')].filter(d => d.scrollWidth > d.clientWidth)
  .map(d => `${d.getAttribute('aria-label')} (${d.scrollWidth} of ${d.clientWidth} pixels)`)
"""


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
            wrong += [f"{name}: {problem}" for problem in _problems(page, width, axe)]
            page.open(page_url(report))
            (out / f"{name}.png").write_bytes(page.screenshot())
        page.look(1280, "light")
        page.open(page_url(report))
        (out / "print.pdf").write_bytes(page.pdf())
        if picture is not None:
            page.look(960, "light")
            picture.write_bytes(page.screenshot(_PICTURE_HEIGHT))
    return wrong


def _problems(page: Page, width: int, axe: str) -> list[str]:
    wrong = []
    wide = page.evaluate(_WIDE)
    if wide > width:
        wrong.append(f"the page is {wide} pixels wide and scrolls sideways")
    if width < _PHONE:
        scrolling = page.evaluate(_SCROLLING)
        wrong += [f"the table scrolls sideways: {table}" for table in scrolling]
    page.evaluate(axe)
    found = page.evaluate(_AXE)
    print(f"  {width}: {found['rules']} rules of axe-core pass", file=sys.stderr)
    for violation in found["violations"]:
        where = "\n    ".join(violation["where"])
        rule = f"{violation['rule']} ({violation['impact']}): {violation['help']}"
        wrong.append(f"{rule}\n    {where}")
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
