"""Every public method has a docstring with an example, and every example is true."""

from __future__ import annotations

import inspect
import uuid
from pathlib import Path

import pytest

from tests.docs.examples import make_graph, run_examples
from tests.docs.reference import FUNCTIONS, KINDS, documented

NEEDS_SPARK = {"Branch.stream_writer", "Graph.spark"}
"""Whose examples are shown and not run here: tests/spark."""
TEXTS: dict[str, str] = {
    **{f"omnigraph.{one.__name__}": inspect.getdoc(one) or "" for one in FUNCTIONS},
    **{name: inspect.getdoc(kind) or "" for name, kind in KINDS.items()},
    **{
        f"{name}.{one.name}": inspect.getdoc(one.value) or ""
        for name, kind in KINDS.items()
        for one in documented(kind)
    },
}


@pytest.mark.parametrize("name", TEXTS)
def test_it_says_what_it_does_and_shows_it(name: str) -> None:
    text = TEXTS[name]
    assert text, f"{name} says nothing"
    if name not in NEEDS_SPARK | {"Snapshot"}:
        assert ">>> " in text, f"{name} has no example"


@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if ">>> " in text])
def test_its_example_is_true(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with make_graph(f"memory://docs-{uuid.uuid4().hex}") as g:
        wrong = run_examples(name, TEXTS[name], g, tmp_path)
    assert wrong == "", wrong


def test_an_example_that_is_not_true_is_seen(tmp_path: Path) -> None:
    with make_graph(f"memory://docs-{uuid.uuid4().hex}") as g:
        assert "Expected:" in run_examples("x", ">>> g.count('Person')\n4\n", g, tmp_path)
