"""Owns writing a stream: each micro-batch is one commit, exactly once, whatever crashes between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from omnigraph.engine.load.bulk import LoadOptions
from omnigraph.engine.load.run import load
from omnigraph.errors import InvalidArgument

if TYPE_CHECKING:
    from omnigraph.engine.session import Session

QUERY_ID = "sql.streaming.queryId"


def make_writer(
    session: Session, options: LoadOptions, stream_id: str | None, *, local: bool
) -> Callable[[Any, int], None]:
    """For `foreachBatch`. The key of a commit is the stream and the number of its batch, so a batch
    that Spark gives again, because it died before it noted it, is not written again."""

    def write(frame: Any, batch: int) -> None:
        stream = stream_id or _query_id(frame)
        keyed = replace(options, idempotency_key=f"stream/{stream}/{batch}")
        load(session, frame.toArrow() if local else frame, keyed)

    return write


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
