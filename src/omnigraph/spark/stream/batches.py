"""Owns writing a stream by `foreachBatch`: each micro-batch is one commit, exactly once, whatever
crashes in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from omnigraph.engine.graph_view import find_type, full_view_of
from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.load.run import load
from omnigraph.engine.opening import open_root
from omnigraph.errors import InvalidArgument
from omnigraph.model.commit_text import read_word
from omnigraph.spark.pipeline import map_columns
from omnigraph.store.roots import Root, parse_root
from omnigraph.telemetry import Ledger

if TYPE_CHECKING:
    from omnigraph.engine.session import Session

QUERY_ID = "sql.streaming.queryId"
Columns = Mapping[str, Any]
"""Where each property comes from: the name of a column, or an expression."""


def stream_writer(
    session: Session,
    options: LoadOptions,
    stream_id: str | None,
    mapping: Mapping[str, Columns] | None,
) -> BatchWriter:
    """The batch comes to this process, unless there is a mapping or the engine is Spark."""
    if (options.type is None) == (mapping is None):
        raise InvalidArgument("A stream needs either `type` or `mapping`.")
    if mapping is not None:
        options = replace(options, engine="spark")
    local = options.engine == "local"
    return BatchWriter(session, options, stream_id, mapping=mapping, local=local)


class BatchWriter:
    """The function for `foreachBatch`.

    The commit carries the stream and the number of its batch. So if Spark dies before it records a
    batch and sends it again, the batch is not written again. Over Spark Connect the writer travels
    to the server and opens the graph there, with the credentials of the server; those of this
    process stay here.
    """

    def __init__(
        self,
        session: Session,
        options: LoadOptions,
        stream_id: str | None,
        *,
        mapping: Mapping[str, Columns] | None,
        local: bool,
    ) -> None:
        self._session: Session | None = session
        self._root: Root | str = session.root
        self._settings = session.settings
        self._held = dict(session.held)
        self._options = options
        self._stream_id = read_word("stream_id", stream_id)
        self._mapping = mapping
        self._local = local

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None, "_root": _address(self._root)}

    def __call__(self, frame: Any, batch: int) -> None:
        stream = self._stream_id or _query_id(frame)
        numbered = replace(self._options, stream=(f"spark/{stream}", batch))
        if self._session is None:
            root = parse_root(self._root) if isinstance(self._root, str) else self._root
            opened = open_root(root, mode="rw", settings=self._settings)
            self._session = opened._session  # noqa: SLF001
            for branch, incarnation in self._held.items():
                self._session = self._session.holding(branch, incarnation)
        source: Any = frame
        if self._mapping is not None:
            source = _by_type(self._session, self._options.branch, frame, self._mapping)
        elif self._local:
            source = frame.toArrow()
        load(self._session, source, numbered)


def _address(root: Root | str) -> str:
    return root if isinstance(root, str) else root.uri


def _by_type(
    session: Session, branch: str, frame: Any, mapping: Mapping[str, Columns]
) -> dict[str, Any]:
    """A frame for each type. A row about a person may come again with each of the person's orders,
    so for entities with a key, equal rows count once."""
    head = session.live_head(branch, Ledger())
    catalog = full_view_of(session, head, Ledger()).catalog
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
