"""What every page of ours must pass: its width, tables on a phone, and all rules of axe-core
(https://github.com/dequelabs/axe-core)."""

from __future__ import annotations

import sys

from .chromium import Page

# The widths of a small laptop, a phone, and the narrowest screen in use.
LOOKS = [(w, s) for w in (1280, 390, 320) for s in ("light", "dark")]
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
[...document.querySelectorAll('.scroll')]
  .filter(d => d.querySelector('table') && d.scrollWidth > d.clientWidth)
  .map(d => `${d.getAttribute('aria-label')} (${d.scrollWidth} of ${d.clientWidth} pixels)`)
"""


def problems(page: Page, width: int, axe: str) -> list[str]:
    """What is wrong with the page that is open.

    Args:
        width: of the window, in CSS pixels.
        axe: the script of axe-core.
    """
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
