"""The phases of a merge are values, and only the last of them writes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.merge.state import CheckedMerge, MergedRows, MergeInputs
from omnigraph.errors import MergeFailed

BEFORE = "node Person { name: String @key age: I32? }\n"
MINE = "node Person { name: String @key age: I32? city: String? }\n"
THEIRS = "node Person { name: String @key age: I64? email: String? @unique }\n"


def put(g: Graph, branch: str, *rows: dict[str, Any]) -> None:
    with g.branch(branch).transaction() as tx:
        tx.upsert("Person", list(rows))


def files(root: Path) -> set[tuple[str, int]]:
    return {(str(p.relative_to(root)), p.stat().st_size) for p in root.rglob("*") if p.is_file()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two branches whose merge gives our table a column with a default, and another type of one."""
    with omnigraph.init(str(tmp_path / "g"), schema=BEFORE) as g:
        put(g, "main", {"name": "ann", "age": 1}, {"name": "bob", "age": 1})
        g.create_branch("dev")
        g.apply_schema(MINE)
        g.branch("dev").apply_schema(THEIRS)
    return tmp_path / "g"


@pytest.mark.parametrize("phase", [MergeInputs, MergedRows, CheckedMerge])
def test_every_phase_is_a_frozen_value(phase: Any) -> None:
    assert phase.__dataclass_params__.frozen
    assert dataclasses.is_dataclass(phase)


def test_a_merge_that_is_refused_has_written_nothing(root: Path) -> None:
    with omnigraph.open(str(root)) as g:
        put(g, "main", {"name": "ann", "age": 2, "city": "rome"})
        put(g, "dev", {"name": "ann", "age": 3, "email": "e"})
        before = files(root)
        with pytest.raises(MergeFailed):
            g.merge("dev")
        assert files(root) == before
        assert g.merge("dev", dry_run=True).conflicts
        assert files(root) == before


def test_a_unique_value_is_checked_where_our_table_has_no_column_for_it_yet(root: Path) -> None:
    with omnigraph.open(str(root)) as g:
        put(g, "main", {"name": "cy", "city": "oslo"})
        put(g, "dev", {"name": "dan", "email": "e"}, {"name": "ann", "email": "f"})
        done = g.merge("dev")
        assert done.changes == {"Person": {"insert": 1, "update": 1}}
        found = {row["name"]: row for row in g.snapshot().scan("Person").read_all().to_pylist()}
        assert {name: row["email"] for name, row in found.items()} == {
            "ann": "f", "bob": None, "cy": None, "dan": "e",
        }  # fmt: skip
        assert found["cy"]["city"] == "oslo"
        assert g.verify(deep=True).ok
