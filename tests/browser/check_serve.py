"""Check `mepof serve` in a browser: every view at all widths and in both colour schemes, live
updates, the keyboard, and a run that is started, cancelled and seen to its end.

    make check-serve

The runs are toys; the report is the golden one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

from plan.toy_bodies import Toy, plan_of, run, toy
from report.samples import golden_report
from web.served import Client, serving

from mepof.errors import MepofError, WorkError
from mepof.plan.body import StepContext
from mepof.plan.journal import read_runs
from mepof.report import write_report
from mepof.web import launch

from .accessible import LOOKS, problems
from .chromium import Page, browser

TOY_RUN = Path(__file__).parents[1] / "unit" / "web" / "toy_run.py"
PROGRAM = "opt debian:linux-source-6.12 pgo rand kbench O2."
# In LLVM's text format.
PROFILE = """do_syscall_64:300:40
 1: 200
 2: 60 vfs_read:60
vfs_read:100:10
 1: 100
"""
_MAX_SECONDS = 1.0
_PICTURE_HEIGHT = 1250
_WATCH = """
window.violations = [];
document.addEventListener('securitypolicyviolation',
  event => violations.push(`${event.violatedDirective}: ${event.blockedURI}`));
"""
_FOREIGN = """
performance.getEntriesByType('resource').map(e => e.name)
  .filter(name => !name.startsWith(location.origin))
"""


def wait(page: Page, condition: str) -> None:
    """Wait until a JavaScript expression is true, also on a page that is loaded meanwhile.

    Raises:
        WorkError: it is not within a minute.
    """
    limit = time.monotonic() + 60  # a run starts slowly on a busy machine
    while time.monotonic() < limit:
        try:
            if page.evaluate(condition):
                return
        except WorkError:  # between two pages
            pass
        time.sleep(0.01)
    raise WorkError(f"the page does not come to: {condition}")


def fill(root: Path) -> dict[str, str]:
    """Runs of all kinds; gives the views by name."""

    def work(context: StepContext) -> None:
        context.run(["echo", f"making {context.step.id}"])
        (context.output / "System.map").write_text("ffffffff81000000 T _stext\n")
        (context.output / "kernel.afdo").write_text(PROFILE)
        write_report(golden_report(), context.output)

    def fail(context: StepContext) -> None:
        context.run(["sh", "-c", "echo 'drivers/net/foo.c:12: error: no bar' >&2; exit 2"])

    names = ["plain", "opt"]
    builds = [toy(f"{name}/build", "source", name=name) for name in names]
    made = [
        toy("source"),
        toy("guest"),
        builds[0],
        toy("opt/instrument", "source", x=1),
        toy("opt/collect", "opt/instrument", "guest", x=2),
        toy("opt/profile", "opt/collect", "opt/instrument", x=3),
        toy("opt/build", "source", "opt/profile", "guest", x=4),
        toy("measure", "plain/build", "opt/build", "guest", x=5),
    ]
    views = {"the list": "/", "trends": "/trends", "the store": "/store", "start": "/start"}
    ids = []
    for number in range(2):
        plan = plan_of(*made, toy("report", "measure", kind="report", number=number))
        plan = replace(plan, program=f"# Optimise Linux 6.12.{number}\n{PROGRAM}\n")
        run(root, plan, Toy(work), Toy(work, kind="report"))
        ids.append(moved(root, f"demo-{number}"))
    try:
        run(root, plan_of(toy("a", x=9), toy("b", "a")), Toy(fail))
    except MepofError:
        ids.append(moved(root, "failed"))
    first, second, failed = ids
    entry = read_runs(root / "out" / "demo-0")[-1]
    digest = entry.steps["opt/build"].digest
    return views | {
        "a run": f"/runs/{first}",
        "a failed run": f"/runs/{failed}",
        "a step": f"/runs/{first}/steps/opt/build",
        "a failed step": f"/runs/{failed}/steps/a",
        "a heatmap": f"/runs/{first}/heatmaps/report",
        "a part of a heatmap": f"/runs/{first}/heatmaps/report?x=2&y=4&w=8&h=6",
        "a comparison": f"/compare?run={first}&run={second}",
        "an artifact": f"/store/{digest}",
        "provenance": f"/store/{digest}/provenance",
        "functions": f"/store/{digest}/functions",
        "nothing": "/runs/000000000000",
    }


def moved(root: Path, name: str) -> str:
    """Give the run in ``out`` a directory of its own; gives its id."""
    (root / "out" / name).mkdir()
    (root / "out" / "journal.jsonl").rename(root / "out" / name / "journal.jsonl")
    return read_runs(root / "out" / name)[-1].id


def check_views(page: Page, site: str, views: dict[str, str], axe: str, out: Path) -> Iterator[str]:
    """Every view at every width and in both schemes."""
    colours = set()
    for name, path in views.items():
        print(f"{name}: {path}", file=sys.stderr)
        for width, scheme in LOOKS:
            page.look(width, scheme)
            page.open(site + path)
            page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            for problem in problems(page, width, axe):
                yield f"{name}, {width}, {scheme}: {problem}"
            for violation in page.evaluate("violations"):
                yield f"{name}: the policy forbids {violation}"
            for foreign in page.evaluate(_FOREIGN):
                yield f"{name}: it fetches {foreign}"
            colours.add((scheme, page.evaluate("getComputedStyle(document.body).backgroundColor")))
            if width != 320:
                picture = out / f"{name.replace(' ', '-')}-{width}-{scheme}.png"
                picture.write_bytes(page.screenshot(2400))
    if len(colours) != 2:
        yield f"the colour schemes are not two: {colours}"


@contextmanager
def under_way(root: Path) -> Iterator[Event]:
    """A run whose first step goes on when the event is set."""
    go_on, began = Event(), Event()

    def work(context: StepContext) -> None:
        (context.output / "file").write_text(context.step.id)
        if context.step.id == "first":
            context.progress(1, 4, "files")
            began.set()
            go_on.wait(60)

    plan = plan_of(toy("first", live=1), toy("second", "first"))
    thread = Thread(target=run, args=(root, plan, Toy(work)))
    thread.start()
    began.wait(60)
    try:
        yield go_on
    finally:
        go_on.set()
        thread.join()


def check_live(page: Page, site: str, root: Path, axe: str) -> Iterator[str]:
    """A page follows its run within a second."""
    with under_way(root) as go_on:
        identifier = read_runs(root / "out")[-1].id
        page.look(390, "light")
        page.open(f"{site}/runs/{identifier}")
        state = "document.querySelector('tr[data-step=\"{}\"]').dataset.state"
        wait(page, state.format("first") + " === 'running'")
        wait(page, "document.querySelector('tr [data-field=waits]').textContent.includes('1 of 4')")
        yield from (f"a live run: {problem}" for problem in problems(page, 390, axe))
        began = time.monotonic()
        go_on.set()
        # It reloads at its end, so that its report and what can be done with it are there.
        wait(page, state.format("second") + " === 'done'")
        seconds = time.monotonic() - began
        print(f"live: {seconds:.2f} s", file=sys.stderr)
        if seconds > _MAX_SECONDS:
            yield f"a live run: its page followed after {seconds:.2f} s"
    (root / "out" / "journal.jsonl").unlink()


def press(page: Page, key: str, text: str = "") -> None:
    """Press and release a key."""
    code = {"Tab": 9, "Enter": 13}[key]
    named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
    page.call("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
    page.call("Input.dispatchKeyEvent", type="keyUp", **named)


def check_keyboard(page: Page, site: str, run_path: str) -> Iterator[str]:
    """Everything that can be clicked is reached by Tab; the first stop leads to the content."""
    page.look(1280, "light")
    page.open(site + run_path)
    count = page.evaluate("document.querySelectorAll('a[href], button, input, summary').length")
    reached = set()
    for number in range(3 * count + 20):
        press(page, "Tab")
        where = page.evaluate(
            "(e => [e.tagName, e.getAttribute('href'), e.textContent.trim(),"
            " [...document.querySelectorAll('*')].indexOf(e)])(document.activeElement)"
        )
        if number == 0 and where[1] != "#content":
            yield f"keyboard: the first stop is {where}"
        if where[0] == "BODY":
            break
        reached.add(where[3])
    wanted = page.evaluate(
        "[...document.querySelectorAll('a[href], button, summary, .scroll, pre[tabindex]')]"
        ".filter(e => e.checkVisibility())"
        ".map(e => [[...document.querySelectorAll('*')].indexOf(e), e.outerHTML.slice(0, 80)])"
    )
    for position, text in wanted:
        if position not in reached:
            yield f"keyboard: not reached: {text}"
    page.evaluate("document.querySelector('a.node[data-step=\"opt/build\"]').focus()")
    press(page, "Enter", "\r")
    wait(page, "location.pathname.endsWith('/steps/opt/build')")


def check_start(page: Page, client: Client, site: str) -> Iterator[str]:
    """A wrong program, a right one, its run, its cancellation."""
    page.look(390, "dark")
    page.open(f"{site}/start")
    enter = (
        "document.querySelector('#name').value = {!r};"
        " document.querySelector('#program').value = {!r};"
        " document.querySelector('[value=start]').click()"
    )
    page.evaluate(enter.format("mine", "opt nothing"))
    wait(page, "document.querySelector('[role=alert]')?.textContent.includes('the program:1:')")
    page.evaluate(enter.format("mine", PROGRAM))
    wait(page, "location.pathname.startsWith('/runs/')")
    wait(page, "document.querySelector('tr[data-step=first]').dataset.state === 'running'")
    page.evaluate("document.querySelector('form[action$=cancel] button').click()")
    wait(page, "!!document.querySelector('.run-interrupted')")
    process = client.site.launcher.started("mine")
    if process is None or process.process.wait(30) is None:
        yield "start: the run goes on"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--axe", type=Path, required=True, help="axe.min.js")
    parser.add_argument("--out", type=Path, required=True, help="where screenshots go")
    parser.add_argument("--picture", type=Path, help="a picture of a run's page")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    axe = given.axe.read_text(encoding="utf-8")
    vars(launch)["RUN"] = (sys.executable, str(TOY_RUN))
    wrong: list[str] = []
    try:
        with TemporaryDirectory() as scratch, browser() as page:
            root = Path(scratch)
            views = fill(root)
            page.call("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
            with serving(root) as client:
                site = f"http://127.0.0.1:{client.port}"
                wrong += check_views(page, site, views, axe, given.out)
                wrong += check_live(page, site, root, axe)
                wrong += check_keyboard(page, site, views["a run"])
                wrong += check_start(page, client, site)
                if given.picture is not None:
                    page.look(960, "light")
                    page.open(site + views["a run"])
                    given.picture.write_bytes(page.screenshot(_PICTURE_HEIGHT))
            with serving(root, "a token that is long") as client:
                login = {"the login": "/login"}
                site = f"http://127.0.0.1:{client.port}"
                wrong += check_views(page, site, login, axe, given.out)
    except (MepofError, OSError) as error:
        print(error, file=sys.stderr)
        return 3
    print("\n".join(wrong) or f"no problem found; screenshots are in {given.out}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
