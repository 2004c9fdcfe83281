"""Owns the snapshot in the form that users hold: one pinned graph version with every read."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from omnigraph.arguments import checked_methods
from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.reads import Reads
from omnigraph.model.catalog import GraphType
from omnigraph.model.permission import BranchAction, BranchResource
from omnigraph.model.version import GraphVersion
from omnigraph.telemetry import Ledger

if TYPE_CHECKING:
    from omnigraph.engine.overlay import Overlay
    from omnigraph.engine.view import TableView


@checked_methods
@dataclass(frozen=True)
class Snapshot(Reads, GraphView):
    """A pinned graph version. The branch may move on, be rewritten or be deleted; a snapshot stays
    as it is. `g.at(ref)` gives one, and so does `snapshot()` of a branch or a graph."""

    asked: BranchResource | None = field(default=None, repr=False)
    """The branch through which it was reached. A caller that may read the branch may read this."""

    def _version(self, ledger: Ledger, action: BranchAction = "read") -> GraphVersion:
        permissions = self._session.permissions
        permissions.require_branch(action, self.asked or permissions.branch(self.graph_version))
        return self.graph_version

    def _pinned(self, action: BranchAction = "read") -> GraphView:
        self._version(self.io, action)
        return self._shown

    @cached_property
    def _shown(self) -> GraphView:
        """The same version without the reads of users, which ask for permission and end here."""
        return GraphView(self.graph_version, self.catalog, self._session, self.io, self.sight)

    # The engine's own access, for code that holds a snapshot as users do.

    def type(self, name: str) -> GraphType:
        """A node or edge type by its name, in the form that the engine uses."""
        return GraphView.type(self._pinned(), name)

    def view(self, kind: GraphType, overlay: Overlay | None = None) -> TableView:
        """The rows of a type, with pending rows on top, for the engine."""
        return GraphView.view(self._pinned(), kind, overlay)


def snapshot_of(view: GraphView, asked: BranchResource | None = None) -> Snapshot:
    """The view in the form that users hold."""
    return Snapshot(
        view.graph_version,
        view.catalog,
        view._session,  # noqa: SLF001
        view.io,
        view.sight,
        asked,
    )
