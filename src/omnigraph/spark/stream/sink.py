"""Owns writing a stream by `writeStream.format("omnigraph")`: each micro-batch is one commit,
exactly once, whatever crashes between.

Tasks write their rows down; a process of its own for each batch loads them. The commit carries the
stream and the number of the batch, so a batch that Spark gives again is not written again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

import omnigraph
from omnigraph.engine.load.bulk import LoadOptions
from omnigraph.engine.load.run import load
from omnigraph.engine.load.state import Mode
from omnigraph.errors import InvalidArgument
from omnigraph.settings import Settings
from omnigraph.spark.load.pieces import Piece, Spool
from omnigraph.store.roots import parse_root


@dataclass
class WrittenDown(WriterCommitMessage):  # type: ignore[misc]
    """The rows of one task, in a spool of their own."""

    prefix: str
    pieces: list[Piece]


class StreamSink(DataSourceStreamArrowWriter):  # type: ignore[misc]
    def __init__(
        self,
        *,
        root: str,
        type: str,
        mode: Mode,
        branch: str,
        stream: str | None,
        checkpoint: str | None,
        actor: str | None,
        message: str | None,
    ) -> None:
        self._root = parse_root(root)
        self._type = type
        self._stream = stream
        self._checkpoint = checkpoint
        self._options = LoadOptions(
            type=type, mode=mode, branch=branch, engine="local", actor=actor, message=message
        )
        with omnigraph.open(root, mode="r") as g:  # a mistake is told before anything runs
            g.snapshot(branch).type(type)

    def _spool(self, prefix: str) -> Spool:
        return Spool(self._root, prefix, Settings.from_environment())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        prefix = f"__spool/{uuid4().hex}"
        spool = self._spool(prefix)
        pieces = []
        for number, batch in enumerate(iterator):
            if not batch.num_rows:
                continue
            rows = pa.Table.from_batches([batch])
            key = spool.write(f"{number}.arrow", rows)
            pieces.append(
                Piece(
                    key=key,
                    table=self._type,
                    given=(),
                    generated=False,
                    rows=rows.num_rows,
                    bytes=rows.nbytes,
                )
            )
        return WrittenDown(prefix, pieces)

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        written = [m for m in messages if m is not None and m.pieces]
        try:
            if written:
                self._load(written, batchId)
        finally:
            self._forget(messages)

    def _load(self, written: list[WrittenDown], batch: int) -> None:
        first = self._spool(written[0].prefix).read(written[0].pieces[0])

        def batches() -> Iterator[pa.RecordBatch]:
            for message in written:
                spool = self._spool(message.prefix)
                for piece in message.pieces:
                    yield from spool.read(piece).to_batches()

        rows = pa.RecordBatchReader.from_batches(first.schema, batches())
        stream = self._stream or checkpoint_id(self._checkpoint)
        options = replace(self._options, stream=(f"spark/{stream}", batch))
        with omnigraph.open(self._root.uri) as g:
            load(g._session, rows, options)  # noqa: SLF001

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        """Also after a commit that raised, which may have landed."""
        self._forget(messages)

    def _forget(self, messages: list[Any]) -> None:
        for message in messages:
            if message is not None:
                self._spool(message.prefix).remove()


def checkpoint_id(location: str | None) -> str:
    """The id of the query, which its checkpoint keeps over restarts."""
    named = "Name the stream: .option('stream_id', 'orders')."
    if not location:
        raise InvalidArgument("The stream has no checkpointLocation to be known by.", help=named)
    parts = urlsplit(location)
    if parts.scheme not in ("", "file"):
        raise InvalidArgument(f"The checkpoint {location} cannot be read from here.", help=named)
    path = Path(unquote(parts.path) if parts.scheme else location) / "metadata"
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["id"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidArgument(
            f"The checkpoint {location} does not say which stream it is of.", help=named
        ) from None
