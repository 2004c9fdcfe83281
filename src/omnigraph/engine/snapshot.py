"""Owns the snapshot as users hold it: one pinned graph version with every read."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.arguments import checked
from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.reads import Reads
from omnigraph.model.version import GraphVersion
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class Snapshot(GraphView, Reads):
    """A graph version that is pinned: the branch may move on, be rewritten or deleted, this stays
    what it was. `g.at(ref)` gives one, and so does `snapshot()` of a branch or a graph."""

    # The engine calls these on views for each table, where nobody has to check types again.
    count = checked(GraphView.count)
    scan = checked(GraphView.scan)
    type = checked(GraphView.type)

    def _version(self, ledger: Ledger) -> GraphVersion:
        return self.graph_version

    def _pinned(self) -> GraphView:
        return self


def snapshot_of(view: GraphView) -> Snapshot:
    """A view as users hold it."""
    return Snapshot(view.graph_version, view.catalog, view._session, view.io)  # noqa: SLF001
