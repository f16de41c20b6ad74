"""Actions of described apps as cases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mepof.app.measured import case_ids, check_distinct_suites, own_cases, suite_name
from mepof.app.own import OwnApp, load_own
from mepof.errors import InputError

ACTION = '[[action]]\nname = "buy"\nargv = ["/shop"]\nseconds = 5\n'


def app(directory: Path, title: str) -> OwnApp:
    path = directory / "app.toml"
    path.write_text(f'title = "{title}"\n{ACTION}')
    return load_own(path)


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Shop", "shop"),
        ("a web server (nginx)", "a-web-server-nginx"),
        ("a shop's database", "a-shops-database"),
        ("  2 x  ", "2-x"),
        ("a" * 39 + " b", "a" * 39),
    ],
)
def test_reports_call_an_app_by_its_title(tmp_path: Path, title: str, name: str) -> None:
    assert suite_name(app(tmp_path, title)) == name


def test_a_title_without_latin_letters_has_a_name_too(tmp_path: Path) -> None:
    one, other = (suite_name(app(tmp_path, title)) for title in ("商店", "書店"))
    assert re.fullmatch(r"app-[0-9a-f]{8}", one) and one != other


def test_each_action_is_a_case_of_the_group_that_the_app_is(tmp_path: Path) -> None:
    shop = app(tmp_path, "Shop")
    (case,) = own_cases(shop)
    assert (case.suite, case.metric, case.name) == ("shop", "shop", "buy")
    assert case.argv == ("/mepof/launch", "measure", "buy")
    assert case_ids(shop) == {("shop", "buy")}


def test_apps_that_reports_would_call_alike_are_refused(tmp_path: Path) -> None:
    check_distinct_suites([app(tmp_path, "Shop"), app(tmp_path, "Shops")])
    with pytest.raises(InputError, match="would call `shop!` shop, like `Shop`"):
        check_distinct_suites([app(tmp_path, "Shop"), app(tmp_path, "shop!")])
    with pytest.raises(InputError, match="would call `Net work` net-work") as raised:
        check_distinct_suites([app(tmp_path, "net-work"), app(tmp_path, "Net work")])
    assert raised.value.remedy == "change the title"
    with pytest.raises(InputError, match="would call `Network` network, like the suite network"):
        check_distinct_suites([app(tmp_path, "Network")])
