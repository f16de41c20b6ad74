"""The crates of the profile engine: which file takes names from which."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CRATES = Path(__file__).parents[2] / "crates"

Module = tuple[str, ...]

_USE = re.compile(r"(?P<seen>\bpub(?:\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]+);")
_QUALIFIED = re.compile(r"(?<![\w:])(?:[A-Za-z_]\w*)(?:::[A-Za-z_]\w*)+")
_NOT_CODE = re.compile(r'//[^\n]*|"(?:[^"\\]|\\.)*"', re.DOTALL)
_TEST_FILE = re.compile(r"#\[cfg\(test\)\](?:\s*#\[[^\]]*\])*\s*mod\s+(\w+);")
_TEST_BODY = re.compile(r"^( *)#\[cfg\(test\)\]\n(?:\1.*\n)*?\1\}$", re.MULTILINE)


class Crate:
    """The modules of a crate that are files, and the names that each takes from others."""

    def __init__(self, directory: Path) -> None:
        files = {_module(path.relative_to(directory)): path for path in directory.rglob("*.rs")}
        texts = {module: _code(path.read_text()) for module, path in files.items()}
        for module, file in files.items():
            for name in _TEST_FILE.findall(file.read_text()):
                texts.pop((*module, name), None)
        self.texts = texts
        self.exports: dict[Module, dict[str, list[str]]] = {}
        self.uses: dict[Module, list[list[str]]] = {}
        for module, text in texts.items():
            body = _USE.sub("", text)
            exports = self.exports.setdefault(module, {})
            uses = self.uses.setdefault(module, [])
            for found in _USE.finditer(text):
                for path, name in _branches(found["tree"]):
                    if found["seen"]:
                        exports[name] = path
                    if not found["seen"] or re.search(rf"\b{re.escape(name)}\b", body):
                        uses.append(path)
            uses += [found.split("::") for found in _QUALIFIED.findall(body)]

    def users(self) -> dict[Module, set[Module]]:
        """The modules from which each module takes a name."""
        return {
            module: {d for path in paths if (d := self.definer(module, path)) not in (None, module)}
            for module, paths in self.uses.items()
        }

    def definer(self, module: Module, path: list[str], depth: int = 0) -> Module | None:
        """The module that defines what `path` names in `module`; None outside the crate."""
        names = list(path)
        at = module
        if names[0] == "crate":
            at = ()
        elif names[0] == "super":
            while names[0:1] == ["super"]:
                at = at[:-1]
                names.pop(0)
        elif (
            names[0] != "self"
            and names[0] not in self.exports[module]
            and (*module, names[0]) not in self.texts
        ):
            return None
        if names and names[0] in ("crate", "self"):
            names.pop(0)
        for position, name in enumerate(names):
            if (*at, name) in self.texts:
                at = (*at, name)
            elif name in self.exports[at] and depth < 8:
                onward = [*self.exports[at][name], *names[position + 1 :]]
                return self.definer(at, onward, depth + 1)
            else:
                break
        return at


def _module(path: Path) -> Module:
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] in ("lib", "mod") else parts


def _code(text: str) -> str:
    return _TEST_BODY.sub("", _NOT_CODE.sub("", text.replace("'\"'", "' '")))


def _branches(tree: str) -> Iterator[tuple[list[str], str]]:
    """Each path of a use tree, and the name that it brings."""
    tree = " ".join(tree.split())
    if "{" in tree:
        stem, inside = tree[: tree.index("{")], tree[tree.index("{") + 1 : tree.rindex("}")]
        depth, start = 0, 0
        for end, character in enumerate(inside + ","):
            depth += (character == "{") - (character == "}")
            if character == "," and depth == 0:
                if branch := inside[start:end].strip():
                    yield from _branches(stem + branch)
                start = end + 1
        return
    path, _, renamed = tree.partition(" as ")
    names = [name.strip() for name in path.split("::")]
    if names[-1] == "self":
        names.pop()
    yield names, renamed or names[-1]


def _circles(users: dict[Module, set[Module]]) -> list[list[Module]]:
    """The strongly connected components of more than one module."""
    reached: dict[Module, set[Module]] = {}
    for module in users:
        seen: set[Module] = set()
        pending = [module]
        while pending:
            for other in users.get(pending.pop(), set()) - seen:
                seen.add(other)
                pending.append(other)
        reached[module] = seen
    circles = {
        tuple(sorted(o for o in reached[m] if m in reached[o])) for m in users if m in reached[m]
    }
    return [list(circle) for circle in sorted(circles)]


@pytest.mark.parametrize("crate", sorted(path.name for path in CRATES.iterdir()))
def test_no_file_takes_a_name_from_one_that_uses_it(crate: str) -> None:
    users = Crate(CRATES / crate / "src").users()
    circles = [
        [
            f"{'::'.join(module)} takes from {'::'.join(other)}"
            for module in circle
            for other in sorted(users[module] & set(circle))
        ]
        for circle in _circles(users)
    ]
    assert circles == []


def test_a_circle_through_a_re_export_and_a_qualified_name_is_found(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod low;\nmod high;\npub use high::High;\n",
        "low.rs": "use crate::High;\npub struct Low;\n",
        "high.rs": "pub struct High;\nfn f() -> crate::low::Low { crate::low::Low }\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert _circles(Crate(tmp_path).users()) == [[("high",), ("low",)]]
    (tmp_path / "low.rs").write_text(
        "pub struct Low;\n#[cfg(test)]\nmod tests {\n    use crate::High;\n}\n"
    )
    assert _circles(Crate(tmp_path).users()) == []
