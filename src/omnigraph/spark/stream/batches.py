"""Owns writing a stream by `foreachBatch`: each micro-batch is one commit, exactly once, whatever
crashes between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from omnigraph.engine.load.bulk import LoadOptions
from omnigraph.engine.load.run import load
from omnigraph.engine.snapshot import find_type
from omnigraph.errors import InvalidArgument
from omnigraph.spark.pipeline import map_columns
from omnigraph.telemetry import Ledger

if TYPE_CHECKING:
    from omnigraph.engine.session import Session

QUERY_ID = "sql.streaming.queryId"
Columns = Mapping[str, Any]
"""Where each property comes from: the name of a column, or an expression."""


def make_writer(
    session: Session,
    options: LoadOptions,
    stream_id: str | None,
    *,
    mapping: Mapping[str, Columns] | None,
    local: bool,
) -> Callable[[Any, int], None]:
    """For `foreachBatch`. The commit carries the stream and the number of its batch, so a batch
    that Spark gives again, because it died before it noted it, is not written again."""

    def write(frame: Any, batch: int) -> None:
        stream = stream_id or _query_id(frame)
        numbered = replace(options, stream=(f"spark/{stream}", batch))
        source: Any = frame
        if mapping is not None:
            source = _by_type(session, options.branch, frame, mapping)
        elif local:
            source = frame.toArrow()
        load(session, source, numbered)

    return write


def _by_type(
    session: Session, branch: str, frame: Any, mapping: Mapping[str, Columns]
) -> dict[str, Any]:
    """A frame for each type. A row that tells of a person may come again with each of his orders:
    of entities that are known by their key, equal rows are one."""
    head = session.live_head(branch, Ledger())
    catalog = session.snapshot(head, Ledger()).catalog
    frames = {}
    for name, columns in mapping.items():
        kind = find_type(catalog, name)
        mapped = map_columns(frame, columns, name)
        frames[name] = mapped.distinct() if kind.key or "id" in columns else mapped
    return frames


def _query_id(frame: Any) -> str:
    """The id of the query, which its checkpoint keeps over restarts."""
    try:
        found = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    except Exception as error:
        raise InvalidArgument("Over Spark Connect a stream has to be named: stream_id.") from error
    if not found:
        raise InvalidArgument(
            "This is no batch of a stream; give it a name: stream_writer(stream_id='orders')."
        )
    return str(found)
