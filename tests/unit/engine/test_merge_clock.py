"""A merge is later than both of its parents, whatever the clock of the machine says."""

from __future__ import annotations

import omnigraph
from omnigraph.runtime import SystemRuntime

SCHEMA = "node Note { text: String }\n"


class Slow(SystemRuntime):
    """A machine whose clock is an hour behind."""

    def now(self) -> int:
        return super().now() - 3_600_000_000


def test_a_merge_by_a_slow_clock_is_later_than_both_parents() -> None:
    root = "memory://merge-clock"
    g = omnigraph.init(root, schema=SCHEMA, runtime=Slow())
    g.create_branch("dev")
    with omnigraph.open(root) as right, right.branch("dev").transaction() as tx:
        tx.append("Note", {"text": "by a right clock"})
    with g.transaction() as tx:
        tx.append("Note", {"text": "by a slow one"})
    merged = g.merge("dev").commit
    assert merged is not None
    parents = [g.at(parent).commit for parent in merged.parents]
    assert len(parents) == 2
    assert all(merged.created_at > parent.created_at for parent in parents)
    assert all(merged.id > parent.id for parent in parents)
