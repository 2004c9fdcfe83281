"""Owns the files in which tasks of a data source leave their rows until one process loads them as
one commit.

Writing and loading happen in different processes, so the list of files travels in the message of
each task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

import omnigraph
from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.load.run import load
from omnigraph.engine.load.spool import Spool, SpoolPiece
from omnigraph.settings import Settings
from omnigraph.store.roots import Root, parse_root


@dataclass
class SpooledRows(WriterCommitMessage):  # type: ignore[misc]
    """The files of a task. Nobody has read them yet."""

    prefix: str
    pieces: list[SpoolPiece]


class RowSpool:
    """Where the tasks of one writer write rows of one type, and how these are loaded."""

    def __init__(self, root: str, type: str, branch: str) -> None:
        with omnigraph.open(root, mode="r") as g:  # errors are reported before anything runs
            g.at(branch).type(type)
        self._root: Root = parse_root(root)
        self._type = type
        self._prefix = f"__spool/{uuid4().hex}"

    def _at(self, prefix: str) -> Spool:
        return Spool(self._root, prefix, Settings.from_environment())

    def write(self, batches: Iterable[pa.RecordBatch]) -> SpooledRows:
        spool, pieces = self._at(self._prefix), []
        for batch in batches:
            if not batch.num_rows:
                continue
            rows = pa.Table.from_batches([batch])
            pieces.append(
                SpoolPiece(
                    key=spool.write(f"{uuid4().hex}.arrow", rows),
                    table=self._type,
                    given=(),
                    generated=False,
                    rows=rows.num_rows,
                    bytes=rows.nbytes,
                )
            )
        return SpooledRows(self._prefix, pieces)

    def load(self, messages: Sequence[Any], options: LoadOptions) -> None:
        """Loads everything that these tasks wrote, with every check, as one commit."""
        written = [message for message in messages if message is not None and message.pieces]
        rows: Any = []
        if written:
            schema = self._at(written[0].prefix).read(written[0].pieces[0]).schema
            rows = pa.RecordBatchReader.from_batches(schema, self._batches(written))
        with omnigraph.open(self._root.uri) as g:
            load(g._session, rows, options)  # noqa: SLF001

    def _batches(self, written: Sequence[SpooledRows]) -> Iterator[pa.RecordBatch]:
        for message in written:
            spool = self._at(message.prefix)
            for piece in message.pieces:
                yield from spool.read(piece).to_batches()

    def remove(self, messages: Sequence[Any]) -> None:
        """Deletes everything that the writers of these tasks wrote, including failed attempts. A
        stream has another writer in each process, so its files are named in the messages."""
        prefixes = {message.prefix for message in messages if message is not None}
        for prefix in {self._prefix, *prefixes}:
            self._at(prefix).remove()
