"""Owns the snapshot as users hold it: one pinned graph version with every read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.arguments import checked_methods
from omnigraph.engine.condition import Filter
from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.overlay import Overlay
from omnigraph.engine.reads import Reads
from omnigraph.engine.view import TableView
from omnigraph.model.catalog import GraphType
from omnigraph.model.permission import BranchAction, BranchResource
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.telemetry import Ledger


@checked_methods
@dataclass(frozen=True)
class Snapshot(GraphView, Reads):
    """A graph version that is pinned: the branch may move on, be rewritten or deleted, this stays
    what it was. `g.at(ref)` gives one, and so does `snapshot()` of a branch or a graph."""

    asked: BranchResource | None = field(default=None, repr=False)
    """The branch by which it was reached: who may read it may read this."""

    def _version(self, ledger: Ledger, action: BranchAction = "read") -> GraphVersion:
        permissions = self._session.permissions
        permissions.require_branch(action, self.asked or permissions.branch(self.graph_version))
        return self.graph_version

    def _pinned(self, action: BranchAction = "read") -> GraphView:
        self._version(self.io, action)
        if self.sight is None:
            return self
        return GraphView(self.graph_version, self.catalog, self._session, self.io, self.sight)

    # What a view offers to the engine, which has asked once. Here each call asks.

    @property
    def commit(self) -> Commit:
        self._pinned()
        return self._commit()

    @property
    def schema(self) -> str:
        self._pinned()
        return self._schema

    def types(self) -> list[str]:
        return GraphView.types(self._pinned())

    def count(self, type: str) -> int:
        return GraphView.count(self._pinned(), type)

    def scan(
        self,
        type: str,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.RecordBatchReader:
        return GraphView.scan(self._pinned(), type, columns=columns, filter=filter)

    def type(self, name: str) -> GraphType:
        """A node or edge type by its name, as the engine knows it."""
        return GraphView.type(self._pinned(), name)

    def view(self, kind: GraphType, overlay: Overlay | None = None) -> TableView:
        """The engine's door to the rows of a type, with rows that are pending over them."""
        return GraphView.view(self._pinned(), kind, overlay)


def snapshot_of(view: GraphView, asked: BranchResource | None = None) -> Snapshot:
    """A view as users hold it."""
    return Snapshot(
        view.graph_version,
        view.catalog,
        view._session,  # noqa: SLF001
        view.io,
        view.sight,
        asked,
    )
