"""Files that people write: what is wrong with one is reported with its line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field, RootModel, ValidationError, model_validator

from mepof.app.android import AndroidApps, load_described
from mepof.app.apps import App
from mepof.arch import Arch
from mepof.described import Described, Named, Word, check_distinct, first_error, read_described
from mepof.device.preparation import Preparation
from mepof.errors import InputError
from mepof.kernel.options import Options
from mepof.kernel.overlay import Exclusions, Overlay
from mepof.pmu.core import Core
from mepof.pmu.counter import Counters
from mepof.suite.cases import Suite
from mepof.toolchain.versions import Description

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src" / "mepof"


@dataclass(frozen=True)
class Kind:
    """One kind of file that people write.

    Attributes:
        example: a right one.
        key: that it must have, and whose value is a string.
        owner: what has that key, as messages name it.
    """

    model: type[BaseModel]
    example: Path
    key: str
    owner: str


KINDS = {
    "suite": Kind(Suite, CODE / "suite/suites/tools.toml", "metric", "`case[0]`"),
    "app": Kind(App, CODE / "app/apps/kbench.toml", "title", "the app"),
    "options": Kind(Options, CODE / "kernel/options.toml", "title", "`O2`"),
    "core": Kind(Core, CODE / "pmu/cores/zen4.toml", "arch", "the core"),
    "counters": Kind(Counters, CODE / "pmu/counters/zen4.toml", "metric", "`counter[0]`"),
    "preparation": Kind(
        Preparation, CODE / "device/preparations/android.toml", "what", "`setting[0]`"
    ),
    "overlay": Kind(Overlay, ROOT / "native/overlays/pgo/overlay.toml", "file", "`edit[0]`"),
    "architecture": Kind(Arch, CODE / "arch/arm64.toml", "triple", "the architecture"),
    "toolchain": Kind(Description, CODE / "toolchain/clang.toml", "title", "the toolchain"),
    "exclusions": Kind(Exclusions, ROOT / "native/overlays/exclude.toml", "reason", "`exclude[0]`"),
}


def complaint(kind: str, path: Path) -> InputError:
    given = {"name": "mine"} if issubclass(KINDS[kind].model, Named) else {}
    if KINDS[kind].model is Overlay:
        given["directory"] = str(path.parent)
    with pytest.raises(InputError) as raised:
        read_described(path, KINDS[kind].model, kind, given)
    assert "\n" not in str(raised.value)
    return raised.value


def changed(kind: str, path: Path, change: Callable[[str], str]) -> int:
    """Write the example with another first line of its key; the number of that line."""
    lines = KINDS[kind].example.read_text().splitlines()
    begins = re.compile(rf"{KINDS[kind].key} = ")
    number = next(n for n, line in enumerate(lines) if begins.match(line))
    lines[number] = change(lines[number])
    path.write_text("\n".join(lines))
    return number + 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mine.toml"


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_key_has_its_line_and_the_nearest_key(kind: str, path: Path) -> None:
    key = KINDS[kind].key
    wrong = key[:-2] + key[-1] + key[-2]
    line = changed(kind, path, lambda old: old.replace(key, wrong, 1))
    found = complaint(kind, path)
    assert found.message == f"{path}:{line}: unknown key `{wrong}`"
    assert found.remedy == f"did you mean `{key}`?"


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_key_has_the_line_of_its_table(kind: str, path: Path) -> None:
    line = changed(kind, path, lambda old: "")
    found = re.fullmatch(
        rf"{re.escape(str(path))}:(\d+): `{KINDS[kind].key}` is missing from (.*)",
        str(complaint(kind, path)),
    )
    assert found is not None
    assert found[2] == KINDS[kind].owner
    assert int(found[1]) == 1 if found[2].startswith("the ") else line - 9 < int(found[1]) < line


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", ["3", "[]", "{}", "true", "1979-05-27"])
def test_a_wrong_type_has_its_line(kind: str, value: str, path: Path) -> None:
    line = changed(kind, path, lambda old: f"{KINDS[kind].key} = {value}")
    found = complaint(kind, path)
    assert found.message.startswith(f"{path}:{line}: `")
    assert found.message.endswith(f"{KINDS[kind].key}` must be a string")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_not_toml_has_the_line_of_the_mistake(kind: str, path: Path) -> None:
    line = changed(kind, path, lambda old: f"{old} and more")
    found = str(complaint(kind, path))
    assert found.startswith(f"the {kind} {path} is not TOML: ")
    assert f"(at line {line}, column " in found


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_not_utf_8_has_the_line_of_the_byte(kind: str, path: Path) -> None:
    path.write_bytes(b"# one\n# two\ntitle = 'a\xff'\n")
    assert str(complaint(kind, path)) == f"{path}:3: the {kind} is not UTF-8 text"


def test_a_list_of_apps_of_another_systems_editor_is_one(path: Path) -> None:
    text = (ROOT / "examples/phone-apps/apps.toml").read_bytes()
    path.write_bytes(b"\xef\xbb\xbf" + text)
    assert isinstance(load_described(path), AndroidApps)


def test_a_file_of_another_systems_editor_is_read(path: Path) -> None:
    text = KINDS["core"].example.read_text().replace("\n", "\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert read_described(path, Core, "core").arch == "x86-64"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"title = {'[' * 20_000}{']' * 20_000}", "is nested too deeply"),
        (f"{'.'.join(['a'] * 300)} = 1", "is nested too deeply"),
        (f"{'.'.join(['a'] * 3_000)} = 1", "is nested too deeply"),
        (f"title = {'9' * 5000}", "has a number of too many digits"),
    ],
)
def test_what_is_beyond_the_limits_of_a_reader_is_refused(
    text: str, message: str, path: Path
) -> None:
    path.write_text(text)
    assert message in str(complaint("core", path))
    with pytest.raises(InputError, match=message):
        load_described(path)


@pytest.mark.parametrize("special", [os.mkfifo, lambda path: path.symlink_to("/dev/null")])
@pytest.mark.parametrize("read", [load_described, lambda path: read_described(path, Core, "core")])
def test_a_pipe_or_a_device_is_refused_unread(
    path: Path, special: Callable[[Path], None], read: Callable[[Path], object]
) -> None:
    special(path)
    with pytest.raises(InputError, match=r"/mine.toml is neither a file nor .* \(copy what"):
        read(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_not_there_is_an_error(kind: str, path: Path) -> None:
    assert str(complaint(kind, path)) == f"cannot read the {kind} {path}: No such file or directory"


class Inner(Described):
    number: int = 0
    fraction: float = 0
    words: tuple[str, ...] = ()


class Outer(Named):
    inner: Inner | None = None
    table: dict[str, Inner] = Field(default={})
    inners: tuple[Inner, ...] = ()
    choice: dict[Literal["left", "right"], Inner] | None = None

    @model_validator(mode="after")
    def _are_distinct(self) -> Outer:
        check_distinct(self.table[name].words[0] for name in self.table)
        return self


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[inner]\nnumber = '3'", "2: `inner.number` must be an integer"),
        ("[inner]\nnumber = 3.5", "2: `inner.number` must be an integer"),
        ("[inner]\nnumber = true", "2: `inner.number` must be an integer"),
        ("[inner]\nfraction = '3'", "2: `inner.fraction` must be a number"),
        ("table = 3", "1: `table` must be a table"),
        ("[inner]\nfraction = inf", "2: `inner.fraction` must be a finite number"),
        ("[inner]\nfraction = nan", "2: `inner.fraction` must be a finite number"),
        ("[inner]\nfraction = 07:32:00", "2: `inner.fraction` must be a number"),
        ("[inner]\nwords = 'a'", '2: `inner.words` must be an array (write `["a"]`)'),
        ("\n[inners]", "2: `inners` must be an array (begin each with `[[inners]]`)"),
        ("[inner]\nwords = [\n'a',\n3]", "4: `inner.words[1]` must be a string"),
        ("inner = 3", "1: `inner` must be a table"),
        ("inner.n = 3", "1: unknown key `n` (known: fraction, number, words)"),
        ("[table.number]\nnumbr = 1", "2: unknown key `numbr` (did you mean `number`?)"),
        ("choice.left.nubmer = 1", "1: unknown key `nubmer` (did you mean `number`?)"),
        ("[choice.rihgt]", "1: unknown key `rihgt` (did you mean `right`?)"),
        ("\ninners = [\n{},\n{word = 1}]", "4: unknown key `word` (did you mean `words`?)"),
        ("[[inners]]\n[[inners]]\ntable = 1", "3: unknown key `table`"),
        ("innre = 1\n[inner]\nnumber = ''", "1: unknown key `innre` (did you mean `inner`?)"),
        ("[inner]\nnumber = ''\n[other]\n", "3: unknown key `other`"),
        ("name = 'x'", "1: unknown key `name`"),
        ("\n\n[inner]\nnumber = ''\nfraction = ''", "4: `inner.number`"),
        ("[table]\na.words = ['x']\nb.words = ['x']", "1: the thing: `x` occurs twice"),
    ],
)
def test_a_mistake_is_found_wherever_it_is(text: str, message: str, path: Path) -> None:
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_described(path, Outer, "thing", {"name": "given"})
    assert str(raised.value).startswith(f"{path}:{message}")


def test_a_message_has_no_pattern_and_no_words_of_the_reader() -> None:
    class Thing(Described):
        name: Word = "x"
        inner: Outer | None = None

    with pytest.raises(ValidationError) as caught:
        Thing.model_validate({"name": "A"})
    assert first_error(caught.value).startswith("name: Text should consist of lower case letters")
    with pytest.raises(ValidationError) as caught:
        same = {"words": ["a"]}
        Thing.model_validate_json(
            json.dumps({"inner": {"name": "x", "table": {"a": same, "b": same}}})
        )
    assert first_error(caught.value) == "inner: `a` occurs twice"


def test_what_is_given_is_not_from_the_file(path: Path) -> None:
    path.write_text("inner.fraction = 1\n")
    read = read_described(path, Outer, "thing", {"name": "given"})
    assert read == Outer(name="given", inner=Inner(fraction=1))


def test_tables_of_free_names_know_their_keys(path: Path) -> None:
    class Tables(RootModel[dict[str, Inner]]):
        """A file of tables."""

    path.write_text("[a]\n[b]\nnubmer = 1\n")
    with pytest.raises(InputError, match=r":3: unknown key `nubmer` \(did you mean `number`"):
        read_described(path, Tables, "things")
