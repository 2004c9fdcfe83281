"""Checks of a whole history: linear, without gaps, ordered in time."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable

from omnigraph.engine.graph import Graph
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.telemetry import Ledger


def check_linear(g: Graph, branch: str = "main") -> list[Commit]:
    """The commits of a branch, oldest first, proven to be one chain."""
    head = g.at(branch)
    versions: list[GraphVersion] = [
        g._session.read_version(branch, number, Ledger())
        for number in range(head.graph_version.first, head.version + 1)
    ]
    assert [v.version for v in versions] == list(range(versions[0].version, head.version + 1))
    commits = [v.commit for v in versions]
    for older, newer in itertools.pairwise(commits):
        assert newer.parents == (older.id,)
        assert newer.created_at > older.created_at
        assert newer.id > older.id
    assert len({c.id for c in commits}) == len(commits)
    assert [c.id for c in g.at(branch).log()][: len(commits)] == [c.id for c in reversed(commits)]
    return commits


def kinds(commits: Iterable[Commit]) -> Counter[str]:
    return Counter(commit.kind for commit in commits)


def asked_for(commits: Iterable[Commit]) -> Counter[str]:
    """The same without what maintenance made."""
    return kinds(commit for commit in commits if commit.kind != "optimize")


def rows(g: Graph, type: str, *columns: str) -> list[tuple[object, ...]]:
    """All rows of a type, sorted."""
    table = g.snapshot().scan(type, columns=list(columns)).read_all()
    return sorted(zip(*(table[name].to_pylist() for name in columns), strict=True))
