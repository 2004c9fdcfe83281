"""A power cut at any moment: what was acknowledged is there, what is there is whole."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.sim.operations import (
    OPERATIONS,
    State,
    check_still_writable,
    create_branch,
    init,
    lose_a_race,
    prepare,
    read_state,
    write_one_type,
)
from tests.sim.power import Disk, Moment, lost_contents, watched

# Two commits make a third state in between; the crash tests have that one.
WATCHED = [name for name in OPERATIONS if name != lose_a_race.__name__]


def run(operation: str, top: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[State | None, Disk]:
    """Runs an operation on a graph that is wholly on the disk. What the graph was before."""
    root = top / "graph"
    if operation != init.__name__:
        prepare(str(root))
    before = read_state(str(root))
    with watched(top, monkeypatch) as disk:
        OPERATIONS[operation](str(root))
    return before, disk


@pytest.mark.parametrize("operation", WATCHED)
def test_an_acknowledged_commit_survives_a_power_cut(
    operation: str, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, disk = run(operation, top, monkeypatch)
    after = read_state(str(top / "graph"))
    kept = top.with_name("kept")
    disk.moments[-1].restore(disk.inode, kept)
    emptied = top.with_name("emptied")
    lost_contents(disk.moments[-1], top, emptied)
    for left in (kept, emptied):
        assert read_state(str(left / "graph")) == after
        check_still_writable(str(left / "graph"))
        shutil.rmtree(left)


@pytest.mark.parametrize("durability", ["full", "relaxed"])
@pytest.mark.parametrize("operation", WATCHED)
def test_a_power_cut_at_any_moment_leaves_the_graph_before_or_after(
    operation: str, durability: str, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", durability)
    before, disk = run(operation, top, monkeypatch)
    after = read_state(str(top / "graph"))
    moments = [*disk.moments, *disk.linked]
    assert disk.linked
    for number, moment in enumerate(moments):
        kept = top.with_name(f"kept{number}")
        moment.restore(disk.inode, kept)
        state = read_state(str(kept / "graph"))
        assert state in (before, after)
        if moment in disk.linked:
            # Everything that the commit needs was on the disk before its number was taken.
            assert state == after
        if state is None:
            init(str(kept / "graph"))
        check_still_writable(str(kept / "graph"))
        shutil.rmtree(kept)


def test_a_branch_never_outlives_the_commit_that_it_was_made_from(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else main would go on with another commit under the number that the branch points at."""
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "relaxed")
    root = top / "graph"
    prepare(str(root))
    with watched(top, monkeypatch) as disk:
        write_one_type(str(root))
        create_branch(str(root))
    after = read_state(str(root))
    assert after is not None
    moments = [moment for moment in disk.linked if has_branch(moment, disk, top)]
    assert moments
    for moment in moments:
        kept = top.with_name("kept")
        moment.restore(disk.inode, kept)
        assert read_state(str(kept / "graph")) == after
        shutil.rmtree(kept)


def has_branch(moment: Moment, disk: Disk, top: Path) -> bool:
    kept = top.with_name("look")
    moment.restore(disk.inode, kept)
    found = (kept / "graph/__manifest/new").is_dir() and any(
        (kept / "graph/__manifest/new").glob("*.json")
    )
    shutil.rmtree(kept)
    return found
