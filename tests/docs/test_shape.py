"""The shape of the code: no cycle of imports, also not of those for types alone; no new class name
that stands for two things; few modules with one client; and a page about two walks that
names files that are there."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.docs.test_index import SOURCE, TOP

MOST_CLASSES = 23
"""Class names that stand in several modules. It only ever becomes smaller."""
MOST_SINGLE_CLIENTS = 0.225
"""The share of modules that only one other module imports. It was 0.276 before the redesign."""


def module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def trees() -> Mapping[str, ast.Module]:
    paths = sorted(SOURCE.rglob("*.py"))
    return {
        module_of(f"omnigraph/{p.relative_to(SOURCE)}"): ast.parse(p.read_text(encoding="utf-8"))
        for p in paths
    }


def imports(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """What each module imports, wherever the statement stands in it."""
    found: dict[str, set[str]] = {}
    for name, tree in trees.items():
        named = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                parts = [f"{node.module}.{alias.name}" for alias in node.names]
                named |= {part if part in trees else node.module for part in parts}
            elif isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
        found[name] = (named & trees.keys()) - {name}
    return found


def single_clients(imports: Mapping[str, set[str]]) -> dict[str, str]:
    """Modules that one other module alone imports, and that module."""
    clients = defaultdict(list)
    for name, used in imports.items():
        for module in used:
            clients[module].append(name)
    return {module: used[0] for module, used in clients.items() if len(used) == 1}


def test_few_modules_have_one_client() -> None:
    """Those that are left are nouns, or stand on the other side of a layer."""
    all_imports = imports(trees())
    found = single_clients(all_imports)
    assert len(found) <= MOST_SINGLE_CLIENTS * len(all_imports), sorted(found.items())


def test_a_single_client_would_be_seen() -> None:
    assert single_clients({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"b": "a"}


def test_no_module_imports_itself_by_way_of_others() -> None:
    TopologicalSorter(imports(trees())).prepare()


def test_a_cycle_would_be_seen() -> None:
    one = ast.parse("def late():\n    from b import x")
    other = ast.parse("if TYPE_CHECKING:\n    import a")
    with pytest.raises(CycleError):
        TopologicalSorter(imports({"a": one, "b": other})).prepare()


def test_a_class_name_stands_for_one_thing() -> None:
    places = defaultdict(set)
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(name)
    several = {name: held for name, held in places.items() if len(held) > 1}
    assert len(several) <= MOST_CLASSES, several


def test_the_walks_name_files_that_are_there() -> None:
    page = (TOP / "docs" / "dev" / "walks.md").read_text(encoding="utf-8")
    before = {"plan/load/text.py"}
    named = set(re.findall(r"`([a-z_/]+\.py)`", page)) - before
    assert len(named) > 60
    assert {name for name in named if not (SOURCE / name).is_file()} == set()
