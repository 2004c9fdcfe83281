"""A long history costs what a short one does: pages of the log, refs by commit, number and time,
and merge bases, across the fold. Versions are written by the store, as folding would have."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.history.ancestry import find_merge_bases
from omnigraph.model.version import GraphVersion
from omnigraph.runtime import encode_ulid
from omnigraph.settings import Settings
from omnigraph.store.history import Archive
from omnigraph.store.objects import ObjectStore
from omnigraph.store.versions import Versions, version_key
from omnigraph.telemetry import Ledger

SETTINGS = Settings(durability="relaxed", folding="off", queue=False)
PAGE = 50


def following(version: GraphVersion) -> GraphVersion:
    number, time = version.version + 1, version.commit.created_at + 1_500
    commit = msgspec.structs.replace(
        version.commit,
        id=encode_ulid(time // 1000, number),
        parents=(version.commit.id,),
        created_at=time,
        kind="write",
        actor=f"actor {number % 7}",
        operation=encode_ulid(time // 1000, number + 1),
    )
    return msgspec.structs.replace(version, version=number, token=str(number), commit=commit)


def lengthen(place: Path, count: int) -> list[str]:
    """Makes a history of so many versions, all but the last few in the archive, with a branch
    `side` from the middle of it; the commits, oldest first."""
    with omnigraph.init(place, schema="node Person { name: String }\n", settings=SETTINGS) as g:
        g.mutate('insert Person { name: "ann" }')
        objects: ObjectStore = g._session.metered(Ledger())
        versions = Versions(objects)
        chain = [versions.read("main", number) for number in (1, 2)]
        while len(chain) < count:
            chain.append(following(chain[-1]))
        below = count - 2
        for start in range(0, below, 4096):
            Archive("main").write(objects, chain[start : min(start + 4096, below)])
        objects.delete(version_key("main", 1))
        objects.delete(version_key("main", 2))
        for version in chain[below:]:
            versions.put(msgspec.structs.replace(version, folded=below + 1))
    with omnigraph.open(place, settings=SETTINGS) as g:
        g.create_branch("side", f"main~{count // 2}")
        g.branch("side").mutate('insert Person { name: "bob" }')
    return [version.commit.id for version in chain]


class Cost:
    """Reads of one look each, by a handle that was just opened."""

    def __init__(self, place: Path, commits: list[str]) -> None:
        count = len(commits)
        self.reads: dict[str, int] = {}
        self.place = place
        with self.cold() as g:
            self.page("the first page", g, "main", commits[::-1][:PAGE])
        for share in (3, 7, 10):
            back = count * share // 11
            with self.cold() as g:
                self.page(f"a page {share}", g, f"main~{back}", commits[::-1][back : back + PAGE])
            old = commits[count - 1 - back]
            with self.cold() as g:
                snapshot = g.at(old)
                assert snapshot.commit.id == old
                moment = datetime.fromtimestamp(snapshot.commit.created_at / 1e6, UTC)
                self.reads[f"by id {share}"] = snapshot.io.reads
            with self.cold() as g:
                snapshot = g.at(f"main*{moment.strftime('%Y-%m-%dT%H:%M:%S.%fZ')}")
                assert snapshot.commit.id == old
                self.reads[f"by time {share}"] = snapshot.io.reads
        with self.cold() as g:
            ledger = Ledger()
            heads = [g.at(name).graph_version for name in ("main", "side")]
            (base,) = find_merge_bases(g._session, heads[:1], heads[1], ledger)
            assert base.commit.id == commits[count - 1 - count // 2]
            self.reads["merge base"] = ledger.reads

    def cold(self) -> Graph:
        return omnigraph.open(self.place, mode="r", settings=SETTINGS)

    def page(self, name: str, g: Graph, ref: str, expected: list[str]) -> None:
        log = g.at(ref).log(limit=PAGE)
        assert [commit.id for commit in log] == expected
        self.reads[name] = log.io.reads


def test_ten_times_the_history_costs_no_more_requests(tmp_path: Path) -> None:
    short = Cost(tmp_path / "short", lengthen(tmp_path / "short", 1_500))
    long = Cost(tmp_path / "long", lengthen(tmp_path / "long", 12_000))
    for name, reads in long.reads.items():
        # A page may lie on the edge of two segments.
        assert reads <= short.reads[name] + 1, (name, short.reads, long.reads)
    assert max(long.reads.values()) <= 12, long.reads


@pytest.mark.slow
def test_a_hundred_thousand_commits_cost_no_more_requests_than_a_thousand(tmp_path: Path) -> None:
    short = Cost(tmp_path / "short", lengthen(tmp_path / "short", 1_500))
    long = Cost(tmp_path / "long", lengthen(tmp_path / "long", 100_000))
    for name, reads in long.reads.items():
        assert reads <= short.reads[name] + 1, (name, short.reads, long.reads)
    with long.cold() as g:
        report = g.verify()
        assert report.ok, report.errors[:3]
