"""Forks: a child is told at once what it cannot do, and holds nothing of its parent's."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from tests.bench.processes import results_of, run_together
from tests.processes.forks import SCHEMA


def run(function: str, /, **given: Any) -> dict[str, Any]:
    (result,) = results_of(run_together(f"tests.processes.forks:{function}", [given]))
    found: dict[str, Any] = result
    return found


def test_a_child_of_a_process_that_used_a_graph_is_refused_at_once(tmp_path: Path) -> None:
    found = run("use_after_use", root=str(tmp_path / "g"))
    assert found.pop("names") == ["parent", "pending"]
    assert len(found) == 13
    for use, (code, hint) in found.items():
        assert code == "forked_process", use
        assert "spawn" in hint, use


def test_a_child_of_a_process_that_touched_no_table_opens_graphs_of_its_own(
    tmp_path: Path,
) -> None:
    root = tmp_path / "g"
    omnigraph.init(root, schema=SCHEMA).close()
    found = run("use_before_use", root=str(root))
    assert found == {
        "held": ["forked_process", "Open it again in this process."],
        "names": ["child"],
    }


def test_a_child_of_a_refused_child_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "g"
    omnigraph.init(root, schema=SCHEMA).close()
    found = run("grandchild", root=str(root))
    assert found["open"][0] == "forked_process"


def test_a_child_never_holds_a_turn_of_its_parent(tmp_path: Path) -> None:
    found = run("keep_a_lock", directory=str(tmp_path))
    assert found == {"held": [], "waited": False, "child lives": True}


def test_a_child_that_ends_takes_nothing_of_its_parent_along() -> None:
    assert run("leave_memory", name=f"forks-{uuid.uuid4().hex}") == {"there": True}


@pytest.mark.s3
def test_a_child_of_a_process_that_used_an_object_store_is_refused_at_once(
    s3_environment: Any, s3_server: Any, s3_prefix: str
) -> None:
    found = run("use_after_use", root=s3_server.url(s3_prefix))
    assert found.pop("names") == ["parent", "pending"]
    assert {code for code, _ in found.values()} == {"forked_process"}
