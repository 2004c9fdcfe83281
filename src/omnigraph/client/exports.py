"""Owns export from a server: the bytes go to files as they come, each whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from omnigraph.client.served_graph import SchemaAt, ServedGraph, pieces_of
from omnigraph.client.understanding import understanding
from omnigraph.engine.export import (
    ExportFormat,
    ExportResult,
    count_name,
    kinds_to_export,
    refuse_foreign,
    write_files,
)
from omnigraph.model.catalog import GraphType

_ANY = "*/*"


def export_rows(
    served: ServedGraph,
    schema: SchemaAt,
    types: Sequence[str] | None,
    format: ExportFormat,
    to: Any,
    *,
    overwrite: bool,
) -> ExportResult:
    """As the engine writes it, of the version of a schema."""
    kinds = kinds_to_export(schema.catalog, types, format)
    if isinstance(to, str | os.PathLike) and to != "-":
        refuse_foreign(to)

    def write(held: list[GraphType], stream: Any) -> dict[str, int]:
        everything = format == "jsonl" and types is None
        names = None if everything else [kind.name for kind in held]
        query = {"ref": schema.pin, "type": names, "format": format}
        if held:
            response = served.begin("GET", "/export", accept=_ANY, query=query)
            try:
                for piece in pieces_of(response):
                    stream.write(piece)
            finally:
                response.close()
        return _counts(served, schema.pin, held)

    counts, files = write_files(schema.catalog, kinds, format, to, write, overwrite=overwrite)
    return ExportResult(schema.commit.id, format, counts, files)


@understanding()
def _counts(served: ServedGraph, pin: str, kinds: list[GraphType]) -> dict[str, int]:
    """Of the same version, so these are the numbers of rows that came."""
    if not kinds:
        return {}
    told = served.get("", {"ref": pin, "type": [kind.name for kind in kinds]})["types"]
    counts: dict[str, int] = {}
    for kind, one in zip(kinds, told, strict=True):
        counts[count_name(kind, counts)] = int(one["count"])
    return counts
