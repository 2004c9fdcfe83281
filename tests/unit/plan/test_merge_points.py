"""Comparing few pairs of versions finds the merge bases of all pairs."""

from __future__ import annotations

import itertools
import random

import msgspec
import pytest

import omnigraph
from omnigraph.engine.history.ancestry import find_merge_bases
from omnigraph.engine.upkeep.survey import needed_versions, survey_chains
from omnigraph.model.version import GraphVersion
from omnigraph.plan.merge_points import Points
from omnigraph.settings import Settings
from omnigraph.telemetry import Ledger

SCHEMA = "node Note { text: String }\n"
SETTINGS = Settings(durability="relaxed", folding="off", queue=False)
COUNTER = itertools.count()


def grown(seed: int, steps: int) -> omnigraph.Graph:
    """A graph whose branches were forked, written and merged at random."""
    luck = random.Random(seed)
    root = f"memory://points-{next(COUNTER)}"
    g = omnigraph.init(root, schema=SCHEMA, settings=SETTINGS)
    for step in range(steps):
        branches = g.branches()
        kind = luck.choice(["fork", "write", "write", "merge", "merge"])
        if kind == "fork" and len(branches) < 6:
            g.create_branch(f"b{step}", luck.choice(branches))
        elif kind == "merge" and len(branches) > 1:
            source, into = luck.sample(branches, 2)
            g.branch(into).merge(source)
        else:
            with g.branch(luck.choice(branches)).transaction() as tx:
                tx.append("Note", {"text": str(step)})
    return g


@pytest.mark.parametrize("seed", range(12))
def test_no_base_of_any_pair_is_left_out(seed: int) -> None:
    g = grown(seed, 40)
    session, ledger = g._session, Ledger()
    chains = survey_chains(session, ledger)
    ends = [chain.end for chain in chains.values()]
    kept = [version for chain in chains.values() for version in chain.versions]
    found = needed_versions(session, ends, ledger, kept)
    known = {(version.branch, version.version) for version in kept}
    for one, other in itertools.combinations(kept, 2):
        if one.branch != other.branch:
            for base in find_merge_bases(session, [one], other, ledger):
                assert (base.branch, base.version) in found | known
    # And of heads alone, whose past is not kept.
    found = needed_versions(session, ends, ledger)
    for one, other in itertools.combinations(ends, 2):
        bases = find_merge_bases(session, [one], other, ledger)
        heads = {(end.branch, end.version) for end in ends}
        assert {(base.branch, base.version) for base in bases} <= found | heads


def compared(some: list[GraphVersion]) -> int:
    points = Points()
    return sum(len(list(points.beside(one))) for one in some if points.add(one))


def test_pairs_that_are_compared_grow_with_branches_and_merges_and_not_with_their_squares() -> None:
    with omnigraph.init("memory://points", schema=SCHEMA, settings=SETTINGS) as g:
        template = g.snapshot().graph_version

    def at(branch: str, version: int, **ancestry: int) -> GraphVersion:
        known = {f"1:{name}": number for name, number in ancestry.items()}
        return msgspec.structs.replace(template, branch=branch, version=version, ancestry=known)

    def forks(count: int) -> list[GraphVersion]:
        return [at("main", count), *(at(f"b{n}", 2, main=n + 1) for n in range(count - 1))]

    def busy(count: int) -> list[GraphVersion]:
        """Two branches that merge each other, each time what the other was a while ago."""
        pairs = [(at("main", n, b=n - 3), at("b", n, main=n - 3)) for n in range(4, count)]
        return [one for pair in pairs for one in pair]

    for shape in (forks, busy):
        assert compared(shape(400)) <= 2.2 * compared(shape(200)) + 10
        assert compared(shape(200)) > 100
