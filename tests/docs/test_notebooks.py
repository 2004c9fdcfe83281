"""The example notebooks run from top to bottom, cell by cell, as a notebook runs them: the value of
the last expression is shown, and `await` may stand outside of functions. They are kept without
output."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "demo" / "notebooks").glob("*.ipynb"))
SHOWN = {
    "analyst": [
        "SchemaGraph", "Result", "DataFrame", "Subgraph", "AlgorithmResult", "Diff", "Result",
        "Lanes",
    ],
    "agent": ["Diff", "Merge", "Result", "Lanes"],
}  # fmt: skip
"""What the cells of each end with."""


class Notebook:
    """The cells of a file, and what each of them printed and showed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.told = json.loads(path.read_text(encoding="utf-8"))
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self._loop = asyncio.new_event_loop()

    def run(self) -> Iterator[tuple[str, Any]]:
        """What each cell of code printed, and the value that it ended with."""
        try:
            for number, cell in enumerate(self.told["cells"]):
                if cell["cell_type"] == "code":
                    yield self._cell("".join(cell["source"]), f"{self.path.name}[{number}]")
        finally:
            self._loop.close()

    def _cell(self, source: str, name: str) -> tuple[str, Any]:
        *body, last = ast.parse(source).body
        if isinstance(last, ast.Expr):
            shown = ast.Interactive([ast.Assign([ast.Name("_", ast.Store())], last.value)])
        else:
            shown = ast.Interactive([last])
        self.names["_"] = None
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            for tree in (ast.Module(body, []), ast.Module(shown.body, [])):
                ast.fix_missing_locations(tree)
                code = compile(tree, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                found = eval(code, self.names)
                if inspect.iscoroutine(found):
                    self._loop.run_until_complete(found)
        return printed.getvalue(), self.names["_"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_ends_with(path: Path) -> None:
    shown = []
    for _, value in Notebook(path).run():
        if value is not None:
            view = value._repr_html_()
            assert any(form in view for form in ("<table", "<iframe", "<svg", "<p")), type(value)
            shown.append(type(value).__name__)
    assert shown == SHOWN[path.stem]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_output(path: Path) -> None:
    told = json.loads(path.read_text(encoding="utf-8"))
    assert (told["nbformat"], told["nbformat_minor"]) == (4, 5)
    cells = told["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert all(not cell["outputs"] for cell in cells if cell["cell_type"] == "code")
    assert cells[0]["source"][0].startswith("# ")


def test_both_examples_are_there() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["agent", "analyst"]
