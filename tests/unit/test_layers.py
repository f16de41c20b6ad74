"""Imports between the layers of ``src/mepof`` point one way, as docs/architecture.md draws them."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src" / "mepof"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
#: From the top down: a layer imports from the layers below it.
LAYERS = re.findall(r"^\| `(\w+)/` \|", PAGE, re.M)
#: The modules that lie beside the layers, and the compiled engine.
FOUNDATION = {*(path.stem for path in CODE.glob("*.py")), "_engine"} - {"__init__"}
#: From the top down as well.
CRATES = re.findall(r"^\| `crates/(\w+)` \|", PAGE, re.M)
FILES = sorted(path for path in CODE.rglob("*.py") if "native" not in path.parts)


def module_of(path: Path) -> str:
    """The dotted name of a file below ``src``."""
    return ".".join(path.relative_to(CODE.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in FILES}


def imports_of(path: Path) -> Iterator[str]:
    """Every module of mepof that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports by a relative name"
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            named = [name if name in MODULES else str(node.module) for name in inside]
        else:
            continue
        yield from (name for name in named if name.startswith("mepof."))


def layer_of(module: str) -> str:
    """The name after ``mepof.``; the package itself is of the foundation."""
    return module.split(".")[1] if "." in module else "errors"


def test_every_layer_is_drawn() -> None:
    layers = {path.parent.name for path in CODE.glob("*/__init__.py")}
    assert layers == set(LAYERS), "list every package of src/mepof in docs/architecture.md, once"
    assert len(layers) == len(LAYERS)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_from_layers_below_it(layer: str) -> None:
    below = {layer, *LAYERS[LAYERS.index(layer) + 1 :], *FOUNDATION}
    for path in sorted((CODE / layer).rglob("*.py")):
        above = {name for name in imports_of(path) if layer_of(name) not in below}
        assert not above, f"{path.relative_to(ROOT)} imports {', '.join(sorted(above))}"


@pytest.mark.parametrize("layer", ["plan", "statistics"])
def test_layers_that_know_nothing_of_kernels_import_from_the_foundation(layer: str) -> None:
    for path in sorted((CODE / layer).rglob("*.py")):
        assert {layer_of(name) for name in imports_of(path)} <= {layer, *FOUNDATION}, path


def test_the_foundation_imports_from_the_foundation() -> None:
    for path in sorted(CODE.glob("*.py")):
        assert {layer_of(name) for name in imports_of(path)} <= FOUNDATION, path


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {module: set(imports_of(path)) - {module} for module, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_every_crate_is_drawn_above_those_that_it_uses() -> None:
    manifests = {path.parent.name: path for path in ROOT.glob("crates/*/Cargo.toml")}
    assert set(manifests) == set(CRATES)
    for position, crate in enumerate(CRATES):
        used = tomllib.loads(manifests[crate].read_text())["dependencies"]
        inside = {name.removeprefix("mepof-") for name in used if name.startswith("mepof-")}
        assert inside <= set(CRATES[position + 1 :]), crate
