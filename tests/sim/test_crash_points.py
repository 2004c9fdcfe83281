"""kill -9 at every point: the graph reads as before or as after, and the next write works."""

from __future__ import annotations

import re
import shutil
import uuid
from pathlib import Path

import pytest

import omnigraph
from tests.processes.history import check_linear
from tests.sim.kills import STORAGE, kill_at, record_points
from tests.sim.operations import (
    BETWEEN,
    OPERATIONS,
    check_still_writable,
    init,
    prepare,
    read_state,
)

ROOT = Path(__file__).resolve().parents[2]
EVERY = 6
"""In `make test` every sixth call on storage; all of them in `make sim`."""


@pytest.fixture(scope="module")
def template(memory: Path) -> Path:
    root = memory / "template"
    prepare(str(root))
    return root


def named_points() -> set[str]:
    """All points that the source names."""
    found: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        found |= set(re.findall(r'\breach\(\s*"([^"]+)"\s*\)', path.read_text()))
        assert not re.findall(r"\breach\(\s*[^\")p]", path.read_text()), f"{path}: not a literal"
    return found


class Scene:
    """Copies of one graph: to run an operation on whole, and to kill it on."""

    def __init__(self, operation: str, template: Path) -> None:
        self.operation = operation
        self._template = template
        self.before = read_state(self.copy())
        whole = self.copy()
        self.points = record_points(operation, whole)
        self.after = read_state(whole)
        assert self.after != self.before

    def copy(self) -> str:
        root = self._template.with_name(uuid.uuid4().hex)
        if self.operation != init.__name__:
            shutil.copytree(self._template, root)
        return str(root)

    def kill(self, point: tuple[str, int]) -> None:
        root = self.copy()
        killed = kill_at(self.operation, root, point)
        assert killed or point[0] == STORAGE, f"{point} was not reached"
        state = read_state(root)
        if state is None:
            assert self.operation == init.__name__
            init(root)  # what a crashed init left does not stand in the way
            state = read_state(root)
        if state not in (self.before, self.after):
            # The one commit that another writer made on the way.
            assert BETWEEN.get(self.operation)
            assert state is not None
            assert self.before is not None
            assert state["main"]["version"] == self.before["main"]["version"] + 1
            assert state["main"]["log"][0][1] == "winner"
        check_still_writable(root)
        with omnigraph.open(root, mode="r") as g:
            for branch in g.branches():
                check_linear(g, branch)
        shutil.rmtree(root)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_kill_at_a_named_point_leaves_the_graph_before_or_after(
    operation: str, template: Path
) -> None:
    scene = Scene(operation, template)
    for point in scene.points:
        if point[0] != STORAGE:
            scene.kill(point)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "every", [pytest.param(EVERY, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)]
)
def test_a_kill_at_any_call_on_storage_leaves_the_graph_before_or_after(
    operation: str, every: int, template: Path
) -> None:
    scene = Scene(operation, template)
    calls = [point for point in scene.points if point[0] == STORAGE]
    assert len(calls) > 4
    for point in calls[::every]:
        scene.kill(point)


ELSEWHERE = {
    "group made ready",  # tests/unit/engine/test_groups.py
    "graph unnamed",  # tests/unit/engine/test_graph_deletion.py
    "load read",  # tests/load/test_kills.py
    "load checked",
    "cleanup looked",  # tests/unit/engine/test_cleanup.py
    "cleanup announced",  # tests/unit/engine/test_cleanup.py
    "cleanup archived",
    "cleanup pruned",
    "cleanup swept",
    "before pin",
    "pinned",  # tests/sim/test_hold_races.py
    "versions archived",  # tests/unit/engine/test_chain_archive.py
    "fold published",
    "fold pruned",
    "chains surveyed",
    "texts embedded",  # tests/embed/test_kills.py
    "tables copied",  # tests/unit/engine/test_copy.py
    "versions copied",
    "branch upgraded",  # tests/unit/engine/test_upgrade.py
    "job claimed",  # tests/spark/test_jobs.py
    "intent written",
    "plan noted",
    "rows staged",
    "branch created",
    "job published",
}
"""Points of operations that are killed in tests of their own."""


def test_every_point_that_the_source_names_is_one_where_some_operation_is_killed(
    template: Path,
) -> None:
    killed_at: set[str] = set()
    for operation in OPERATIONS:
        killed_at |= {name for name, _ in Scene(operation, template).points}
    assert named_points() == (killed_at - {STORAGE}) | ELSEWHERE


def test_every_point_that_is_killed_elsewhere_is_named_there() -> None:
    tests = Path(__file__).parents[1]
    texts = [path.read_text(encoding="utf-8") for path in tests.rglob("test_*.py")]
    for point in ELSEWHERE:
        quoted = f'"{point}"'
        assert sum(quoted in text for text in texts) >= 2, point
