"""Owns writing a stream by `writeStream.format("omnigraph")`: each micro-batch is one commit,
exactly once, whatever crashes in between.

Tasks write their rows to files, and a separate process for each batch loads them. The commit
carries the stream and the number of the batch, so a batch that Spark sends again is not written
again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from omnigraph.engine.load.options import LoadOptions
from omnigraph.errors import InvalidArgument
from omnigraph.spark.spooled import RowSpool


class StreamSink(DataSourceStreamArrowWriter):  # type: ignore[misc]
    def __init__(
        self, rows: RowSpool, options: LoadOptions, *, stream: str | None, checkpoint: str | None
    ) -> None:
        self._rows = rows
        self._options = options
        self._stream = stream
        self._checkpoint = checkpoint

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._rows.write(iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        """A batch without rows makes no commit, unless the stream replaces everything."""
        try:
            if self._options.mode == "overwrite" or any(m and m.pieces for m in messages):
                stream = self._stream or checkpoint_id(self._checkpoint)
                options = replace(self._options, stream=(f"spark/{stream}", batchId))
                self._rows.load(messages, options)
        finally:
            self._rows.remove(messages)

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        """Also after a commit that raised, which may have landed."""
        self._rows.remove(messages)


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
