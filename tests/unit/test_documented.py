"""Everything that a program can name is documented, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mepof import _engine, arch
from mepof.adapter.feed.protocol import FEEDS
from mepof.adapter.repository.protocol import REPOSITORIES
from mepof.algorithm.protocol import ALGORITHMS
from mepof.app.apps import DESCRIBED, load_app
from mepof.cli import profile
from mepof.cli.main import app
from mepof.device.preparation import preparation_names
from mepof.device.protocol import DEVICES
from mepof.executor.programs import compiled
from mepof.executor.protocol import EXECUTORS
from mepof.g4 import Source
from mepof.g4.settings import SETTINGS
from mepof.kernel import kconfig
from mepof.kernel.options import options
from mepof.package.protocol import FORMATS
from mepof.pmu.core import core_names
from mepof.pmu.counter import counters_names
from mepof.scenario.protocol import SCENARIOS
from mepof.source.protocol import SOURCES
from mepof.suite.cases import load_suite, suite_names
from mepof.toolchain.protocol import TOOLCHAINS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])

PAGE_OF = {
    **{f"algorithms/{name}.md": name for name in ALGORITHMS.names()},
    **{f"devices/{name}.md": name for name in DEVICES.names()},
    **{f"executors/{name}.md": name for name in EXECUTORS.names()},
    **{f"toolchains/{name}.md": name for name in TOOLCHAINS.names()},
    **{f"scenarios/{name}.md": name for name in SCENARIOS.names()},
    **{f"suites/{name}.md": name for name in suite_names()},
    **{f"{name}.md": name for name in DESCRIBED.names()},
}


def rows(page: str) -> set[str]:
    """The first cells, as code, of all tables of a page."""
    return set(re.findall(r"^\| `([^`]+)` \|", (DOCS / page).read_text(), re.M))


@pytest.mark.parametrize(("page", "name"), PAGE_OF.items())
def test_every_variant_has_a_page_under_its_name(page: str, name: str) -> None:
    assert (DOCS / page).is_file(), f"write docs/{page}"
    assert name in (DOCS / page).read_text().splitlines()[0]


def test_every_group_of_entry_points_is_described() -> None:
    own = (
        *(ALGORITHMS, DEVICES, EXECUTORS, FEEDS, FORMATS, REPOSITORIES, SCENARIOS, SOURCES),
        TOOLCHAINS,
    )
    assert {each.package for each in own} == rows("plugins.md")


def test_the_page_about_plug_ins_has_the_files_of_the_example() -> None:
    page = (DOCS / "plugins.md").read_text()
    for language, file in (("toml", "pyproject.toml"), ("python", "mepof_hot_pgo.py")):
        (block,) = re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)
        assert block == (ROOT / "examples/plugin" / file).read_text(), file


def test_every_config_and_option_is_described() -> None:
    assert {*kconfig.names(), *options()} <= rows("configs.md")


def test_every_core_is_described() -> None:
    assert set(core_names()) <= rows("pmu.md")


def test_every_kind_of_machine_is_described() -> None:
    assert set(preparation_names()) <= rows("preparation.md")


def test_every_kind_of_counters_is_described() -> None:
    assert set(counters_names()) <= rows("hardware.md")


def test_every_event_of_the_emulated_pmu_is_described() -> None:
    events = re.findall(r"^\tEVENT\((\w+)\)", (ROOT / "native/pmu/events.h").read_text(), re.M)
    assert set(events) <= rows("pmu.md")


def test_every_repository_is_described() -> None:
    assert set(REPOSITORIES.names()) <= rows("repositories.md")


def test_every_setting_is_described() -> None:
    assert set(SETTINGS) <= rows("g4.md")


@pytest.mark.parametrize("name", suite_names())
def test_every_case_and_metric_of_a_suite_is_described(name: str) -> None:
    text = (DOCS / f"suites/{name}.md").read_text()
    for case in load_suite(name).cases:
        assert f"`{case.name}`" in text
        assert f"| `{case.metric}` |" in text


@pytest.mark.parametrize("name", DESCRIBED.names())
def test_every_action_of_an_app_is_known_by_its_page(name: str) -> None:
    text = (DOCS / f"{name}.md").read_text() + (DOCS / "scenarios/script.md").read_text()
    for action in load_app(name).actions:
        assert f"`{action.name}`" in text


@pytest.mark.parametrize("name", DEVICES.names())
def test_every_device_says_which_architectures_it_boots(name: str) -> None:
    text = (DOCS / f"devices/{name}.md").read_text()
    assert any(f"`{architecture}`" in text for architecture in arch.names())


def test_every_format_and_cause_of_the_profile_engine_is_described() -> None:
    named = {*_engine.INPUT_FORMATS, *_engine.OUTPUT_FORMATS, *_engine.CAUSES}
    assert named <= rows("profile-engine.md")


def test_no_cause_is_forgotten() -> None:
    source = (ROOT / "crates/trace/src/tally.rs").read_text()
    assert set(re.findall(r"Self::\w+ => \"([a-z-]+)\"", source)) == set(_engine.CAUSES)


def test_every_verb_of_profile_is_described() -> None:
    text = (DOCS / "profile-engine.md").read_text()
    for command in profile.app.registered_commands:
        assert f"| `mepof profile {command.name} " in text


def test_every_command_is_described() -> None:
    text = (DOCS / "command-line.md").read_text()
    commands = [command.name for command in app.registered_commands if not command.hidden]
    for name in [*commands, *(group.name for group in app.registered_groups)]:
        assert f"| `mepof {name} " in text or f"| `mepof {name}` |" in text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (page.relative_to(ROOT), text)
        for page in PAGES
        for text in re.findall(r"^ *```g4\n(.*?)^ *```$", page.read_text(), re.M | re.S)
    ],
)
def test_every_program_on_a_page_compiles(page: Path, text: str) -> None:
    assert compiled(Source(str(page), text)).program == text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(
        r"\]\(([^)#]+)(?:#[^)]*)?\)|src(?:set)?=\"([^\"]+)\"", page.read_text()
    ):
        link = target[0] or target[1]
        assert (page.parent / link).exists(), f"{page.name} links to {link}"


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        (DOCS / "architecture.md", "## Ten typical changes"),
        (ROOT / "CONTRIBUTING.md", "## Add a variant"),
    ],
    ids=["typical changes", "variants"],
)
def test_what_a_change_touches_is_there(page: Path, heading: str) -> None:
    section = page.read_text().split(f"{heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    named = [path for row in rows for path in re.findall(r"`([^`]*/[^`]*)`", row)]
    assert len(named) > 10
    for path in named:
        pattern = re.sub("NAME|MACHINE|ARCH", "*", path).replace("…", "**").rstrip("/")
        assert any(any(top.glob(pattern)) for top in (ROOT, ROOT / "src" / "mepof")), path


def headings(page: Path) -> set[str]:
    """The fragments of links to a page's headings, as GitHub makes them."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.M | re.S)
    found = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_headings_lead_to_one(page: Path) -> None:
    for link, fragment in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
        target = (page.parent / link) if link else page
        if target.suffix == ".md":
            assert fragment in headings(target), f"{page.name} links to {link}#{fragment}"


@pytest.mark.parametrize(
    "page",
    # Benchmarks write theirs, with commands and figures of any length.
    [page for page in PAGES if page.parent.name != "benchmarks"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_prose_wraps_at_100_columns(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.M | re.S)
    for line in text.splitlines():
        is_prose = not re.match(r"\s*[|!#<]|\d+\. \[[^]]*\]\([^)]*\)$", line)
        assert len(line) <= 100 or not is_prose, line


@pytest.mark.parametrize(
    "page",
    # The others say what the words of a report mean.
    [page for page in PAGES if page.name not in {"g4.md", "report.md", "statistics.md"}],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_gain_is_called_native_counted_or_modelled(page: Path) -> None:
    # Of tables, a row by itself, unless the table's head says it for all rows.
    for block in re.split(r"\n{2,}", page.read_text()):
        head, *rows = block.splitlines() if block.startswith("|") else [block]
        for text in rows or [head]:
            if re.search(r"\d %\s+(?:fewer|less|shorter)", text):
                assert re.search(r"\b(?:native|counted|modelled)", head + text, re.I), text


def test_the_map_of_the_documentation_is_complete() -> None:
    text = (DOCS / "index.md").read_text()
    listed = {(DOCS / link).resolve() for link in re.findall(r"\]\(([^)#]+)\)", text)}
    assert set(DOCS.rglob("*.md")) - {DOCS / "index.md"} <= listed
