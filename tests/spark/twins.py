"""Two graphs that get the same loads, one in this process and one on Spark, and must be equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph import Graph
from omnigraph.engine.load.result import LoadResult
from omnigraph.errors import OmnigraphError
from omnigraph.plan.load.places import Reject
from tests.load.world import contents, new_graph

GENERATED = ("Note", "Wrote", "Owns")
"""Types of the world without a key: their ids are made."""


@dataclass
class Twins:
    here: Graph
    there: Graph

    @staticmethod
    def make(directory: Path, **settings: Any) -> Twins:
        (directory / "here").mkdir()
        (directory / "there").mkdir()
        return Twins(
            new_graph(directory / "here", **settings), new_graph(directory / "there", **settings)
        )

    def load(self, source: Any, **options: Any) -> tuple[LoadResult, LoadResult]:
        """The same load into both; what comes of it must be the same."""
        one = self.here.load(source, engine="local", **options)
        other = self.there.load(source, engine="spark", **options)
        assert (one.engine, other.engine) == ("local", "spark")
        assert one.counts == other.counts
        assert told(one.rejected) == told(other.rejected)
        assert (one.commit is None) == (other.commit is None)
        self.check()
        return one, other

    def refused(self, source: Any, **options: Any) -> str:
        """The error of a load that must change neither."""
        before, heads = contents(self.here), self._heads()
        messages = []
        for graph, engine in ((self.here, "local"), (self.there, "spark")):
            try:
                graph.load(source, engine=engine, **options)  # type: ignore[arg-type]
            except OmnigraphError as error:
                violations = getattr(error, "violations", ())
                messages.append((type(error), error.message, sorted(v.message for v in violations)))
        assert len(messages) == 2
        assert messages[0] == messages[1]
        assert self._heads() == heads
        assert contents(self.here) == before
        self.check()
        return messages[0][1]

    def attempt(self, source: Any, **options: Any) -> None:
        """The same load into both, whatever comes of it: the same graph or the same error."""
        found: list[Any] = []
        for graph, engine in ((self.here, "local"), (self.there, "spark")):
            try:
                result = graph.load(source, engine=engine, **options)  # type: ignore[arg-type]
                found.append((result.counts, told(result.rejected)))
            except OmnigraphError as error:
                rules = sorted({v.rule for v in getattr(error, "violations", ())})
                found.append((type(error), rules))
        assert found[0] == found[1]
        self.check()

    def check(self) -> None:
        assert comparable(self.here) == comparable(self.there)

    def _heads(self) -> list[str]:
        return [graph.snapshot().commit.id for graph in (self.here, self.there)]


def comparable(g: Graph) -> dict[str, list[str]]:
    """Everything but ids that were made."""
    found = {}
    for kind, rows in contents(g).items():
        hidden = ("id", "dst") if kind == "Wrote" else ("id",) if kind in GENERATED else ()
        shown = [
            {k: v for k, v in row.items() if k not in hidden or len(str(v)) != 26} for row in rows
        ]
        found[kind] = sorted(map(repr, shown))
    return found


def told(rejects: Sequence[Reject]) -> list[tuple[Any, ...]]:
    return sorted(
        (r.source, r.line, r.type, r.rule, r.reason, r.property or "", len(r.id or ""))
        for r in rejects
    )
