"""Owns keeping the adjacency files of edge tables up to date, as part of maintenance."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from omnigraph.engine.columns import Columns
from omnigraph.engine.graph_view import full_view_of
from omnigraph.engine.query.adjacency.cache import Adjacencies
from omnigraph.engine.query.adjacency.file import artefact_key
from omnigraph.engine.query.entities import Entities
from omnigraph.engine.session import Session
from omnigraph.model.catalog import EdgeType
from omnigraph.model.version import GraphVersion
from omnigraph.telemetry import Ledger


def refresh_adjacency(
    session: Session,
    version: GraphVersion,
    keys: Sequence[str],
    changed: Collection[str],
    ledger: Ledger,
) -> list[str]:
    """Writes the adjacency of edge tables that changed or have none, if they are large enough to
    benefit. Returns their keys."""
    snapshot = full_view_of(session, version, ledger)
    entities = Entities(snapshot.view, Columns.shared_by(session), ledger)
    written = []
    for key in keys:
        kind = snapshot.catalog.by_key.get(key)
        pin = version.pins.get(key)
        if not isinstance(kind, EdgeType) or pin is None:
            continue
        if not Adjacencies.shared_by(session).is_worth_writing(pin.rows):
            continue
        artefact = artefact_key(pin.location)
        if key not in changed and session.metered(ledger).exists(artefact):
            continue
        nodes = snapshot.catalog.node_names
        ends = entities.rows(nodes[kind.source]), entities.rows(nodes[kind.target])
        Adjacencies.shared_by(session).write_artefact(entities.rows(kind), *ends, ledger)
        written.append(key)
    return written
