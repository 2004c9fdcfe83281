"""The page that leads from a module to its tests is what the tests import now, and the page about
testing names every folder. `UPDATE_GOLDEN=1` writes the index anew."""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

TOP = Path(__file__).parents[2]
SOURCE = TOP / "src" / "omnigraph"
TESTS = TOP / "tests"
PAGE = TOP / "docs" / "dev" / "test-index.md"
SHOWN = 4


def modules() -> list[str]:
    paths = sorted(SOURCE.rglob("*.py"))
    return [str(p.relative_to(SOURCE)) for p in paths if p.name != "__init__.py"]


def imported(path: Path) -> Iterator[str]:
    """The modules of the package that a file names, as paths below it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value]  # what a test replaces by its dotted name
        for name in names:
            parts = name.split(".")
            for end in range(len(parts), 1, -1):
                place = "/".join(parts[1:end]) + ".py"
                if parts[0] == "omnigraph" and (SOURCE / place).is_file():
                    yield place
                    break


def files_of_tests() -> list[Path]:
    return [p for p in sorted(TESTS.rglob("*.py")) if p.name.startswith(("test_", "proof_"))]


def users() -> Mapping[str, list[str]]:
    """For each module the files of tests that name it, those first that name few others."""
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for path in files_of_tests():
        held = set(imported(path))
        for module in held:
            found[module].append((len(held), str(path.relative_to(TESTS))))
    return {module: [name for _, name in sorted(each)] for module, each in found.items()}


def alike(module: str) -> list[str]:
    """Tests that are called like a module, or else like a folder that it is in."""
    place = Path(module)
    names = [str(path.relative_to(TESTS)) for path in files_of_tests()]
    for word in (place.stem, *reversed(place.parent.parts)):
        stem = word.rstrip("s")
        like = [name for name in names if stem in re.split(r"s?[/_.]", name)]
        if like and word != "engine":
            return sorted(like, key=lambda name: (place.parts[0] not in name, len(name), name))
    return []


def render() -> str:
    known = users()
    lines = [
        "# From a module to its tests",
        "",
        "Made by `make docs` from what the tests import; those that import little else come first.",
        "Where none imports a module, its row has the tests that are called like it or its folder.",
        "",
        "| module | tests |",
        "|---|---|",
    ]
    for module in modules():
        tests = known.get(module) or alike(module)
        shown = ", ".join(f"`{name}`" for name in tests[:SHOWN])
        more = f" and {len(tests) - SHOWN} more" if len(tests) > SHOWN else ""
        lines.append(f"| `{module}` | {shown}{more} |")
    return "\n".join(lines) + "\n"


def test_the_index_leads_from_each_module_to_the_tests_that_name_it() -> None:
    made = render()
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, "tests or modules moved: run `make docs`"


def test_the_page_about_testing_names_every_folder() -> None:
    page = (TOP / "docs" / "dev" / "testing.md").read_text(encoding="utf-8")
    folders = [f"`tests/{p.name}`" for p in TESTS.iterdir() if any(p.rglob("*.py"))]
    missing = [name for name in folders if name not in page]
    assert not missing
