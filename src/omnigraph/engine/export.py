"""Owns export: a snapshot as files that `load` reads, written completely or not at all."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from omnigraph.engine.graph_view import GraphView, find_type
from omnigraph.errors import AlreadyExists, InvalidArgument
from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import Catalog, EdgeType, GraphType
from omnigraph.plan.load.export_rows import shown_names, to_csv_columns, to_lines
from omnigraph.telemetry import Ledger

ExportFormat = Literal["jsonl", "csv", "parquet", "arrow"]
_FORMATS = ("jsonl", "csv", "parquet", "arrow")
_SUFFIXES = {f".{name}" for name in _FORMATS}
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


@dataclass(frozen=True)
class ExportResult:
    """`files` holds the paths that were written, and is empty if the export went to a stream."""

    commit: str
    format: str
    counts: dict[str, int]
    files: tuple[Path, ...] = ()
    io: Ledger = field(default_factory=Ledger, repr=False)


def export(
    snapshot: GraphView,
    *,
    types: Sequence[str] | None,
    format: str,
    to: Any,
    root: Path | None = None,
    overwrite: bool = True,
    elsewhere: Callable[[GraphView, Sequence[GraphType], str, Any], ExportResult] | None = None,
) -> ExportResult:
    """JSONL puts all types into one file, nodes before edges. The other formats write one file for
    each type, into a directory, or into a single file or stream if there is only one type. If
    another engine writes the files, `elsewhere` is called."""
    kinds = kinds_to_export(snapshot.catalog, types, format)
    if isinstance(to, str | os.PathLike) and to != "-":
        refuse_foreign(to)
        refuse_place_in_graph(root, Path(to))
    if elsewhere is not None:
        return elsewhere(snapshot, kinds, format, to)

    def write(held: list[GraphType], stream: Any) -> dict[str, int]:
        return _write(snapshot, held, format, stream)

    counts, files = write_files(snapshot.catalog, kinds, format, to, write, overwrite=overwrite)
    return ExportResult(snapshot.commit.id, format, counts, files, snapshot.io)


def kinds_to_export(catalog: Catalog, types: Sequence[str] | None, format: str) -> list[GraphType]:
    """Nodes before edges."""
    if format not in _FORMATS:
        raise InvalidArgument(f"`format` is one of {', '.join(_FORMATS)}, not {format!r}.")
    kinds = [find_type(catalog, name) for name in types] if types is not None else catalog.types
    found = sorted(kinds, key=lambda kind: isinstance(kind, EdgeType))
    if len({kind.table_key for kind in found}) < len(found):
        raise InvalidArgument("A type is asked for twice.")
    return found


def write_files(
    catalog: Catalog,
    kinds: list[GraphType],
    format: str,
    to: Any,
    write: Callable[[list[GraphType], Any], dict[str, int]],
    *,
    overwrite: bool,
) -> tuple[dict[str, int], tuple[Path, ...]]:
    """Which types go where: `write` writes some of them to a stream and tells their counts."""
    if to == "-" or hasattr(to, "write"):
        stream = sys.stdout.buffer if to == "-" else getattr(to, "buffer", to)
        _require_one(format, kinds, "a stream")
        return write(kinds, stream), ()
    if not isinstance(to, str | os.PathLike):
        raise InvalidArgument(f"`to` is a path or a stream, not {to.__class__.__name__}.")
    plan = _files(catalog, kinds, format, Path(to), str(to).endswith(("/", os.sep)))
    taken = [path for path, _ in plan if os.path.lexists(path)]
    if taken and not overwrite:
        more = "" if len(taken) == 1 else f" (and {len(taken) - 1} more)"
        raise AlreadyExists(
            f"{taken[0]} is there already{more}.", help="Choose another name, or overwrite=True."
        )
    counts: dict[str, int] = {}
    with ExitStack() as done:
        for path, held in plan:
            stream = done.enter_context(_whole_file(path))
            counts |= write(held, stream)
    return counts, tuple(path for path, _ in plan)


def refuse_foreign(to: str | os.PathLike[str]) -> None:
    """Results and messages contain the names of files and are UTF-8."""
    try:
        os.fsdecode(to).encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"The path {os.fsdecode(to)!r} is not a text in UTF-8.") from None
    refuse_address(os.fsdecode(to))


def refuse_address(to: str) -> None:
    """A folder called `s3:` would be made, and the user would look for his files elsewhere."""
    if _ADDRESS.match(to):
        raise InvalidArgument(
            f"{to} is an address, and files are written on this machine.",
            help="Name a path; copy writes a graph to another store.",
        )


def refuse_place_in_graph(root: Path | None, to: Path) -> None:
    """Only the engine writes into the directory of a graph."""
    try:
        place = to.resolve()
    except FileNotFoundError:
        raise InvalidArgument(
            f"{to} cannot be written: the working directory is gone.", help="Give a whole path."
        ) from None
    if root is not None and place.is_relative_to(root.resolve()):
        raise InvalidArgument(f"{to} is in the graph itself.", help="Name another place.")


def _require_one(format: str, kinds: list[GraphType], where: str) -> None:
    if format != "jsonl" and len(kinds) != 1:
        raise InvalidArgument(
            f"{format} holds one type in a file, but {len(kinds)} were asked to go to {where}.",
            help="Export to a directory, or name one type with types=[…].",
        )


def _files(
    catalog: Catalog, kinds: list[GraphType], format: str, to: Path, directory: bool
) -> list[tuple[Path, list[GraphType]]]:
    named = _SUFFIXES.intersection(to.suffixes)
    if not directory and not to.is_dir() and named:
        _require_one(format, kinds, f"the file {to}")
    if directory or to.is_dir() or (format != "jsonl" and len(kinds) != 1) or not to.suffix:
        to.mkdir(parents=True, exist_ok=True)
        if format == "jsonl":
            return [(to / "graph.jsonl", kinds)]
        return [(to / f"{file_stem(catalog, kind)}.{format}", [kind]) for kind in kinds]
    to.parent.mkdir(parents=True, exist_ok=True)
    return [(to, kinds)]


def file_stem(catalog: Catalog, kind: GraphType) -> str:
    """Distinguishes a node type and an edge type of the same name."""
    both = kind.name in catalog.node_names and kind.name in catalog.edge_names
    return kind.table_key.replace(":", "-") if both else kind.name


@contextmanager
def _whole_file(path: Path) -> Iterator[Any]:
    """A file that gets its name once it is complete. Until then only its writer knows its temporary
    name. So if two write the same file, one of them wins with all of its contents."""
    held, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".part", dir=path.parent)
    part = Path(name)
    try:
        with os.fdopen(held, "wb") as file:
            compression = _COMPRESSIONS.get(path.suffix)
            if compression is None:
                yield file
            else:
                with pa.CompressedOutputStream(
                    pa.PythonFile(file, mode="w"), compression
                ) as packed:
                    yield packed
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _write(snapshot: GraphView, kinds: list[GraphType], format: str, stream: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for kind in kinds:
        count = write_batches(kind, format, stream, snapshot.view(kind).scan(snapshot.io))
        counts[count_name(kind, counts)] = count
    return counts


def count_name(kind: GraphType, counts: Mapping[str, int]) -> str:
    """An edge type may have the name of a node type."""
    return kind.name if kind.name not in counts else kind.table_key


def write_batches(
    kind: GraphType, format: str, stream: Any, batches: Iterable[pa.RecordBatch]
) -> int:
    """Writes the rows of one type in a format that `load` reads, and returns their number."""
    schema = row_schema(kind)
    names = shown_names(kind, schema.names)
    shown = pa.schema([f.with_name(n) for f, n in zip(schema, names, strict=True)])
    count = 0
    with _writer(kind, format, stream, shown) as write:
        for batch in batches:
            write(batch)
            count += batch.num_rows
    return count


@contextmanager
def _writer(
    kind: GraphType, format: str, stream: Any, shown: pa.Schema
) -> Iterator[Callable[[pa.RecordBatch], None]]:
    if format == "jsonl":
        yield lambda batch: stream.write(to_lines(kind, batch))
    elif format == "csv":
        with _CsvWriter(kind, stream) as rows:
            yield rows.write
    elif format == "parquet":
        with pq.ParquetWriter(stream, shown) as writer:
            yield lambda batch: writer.write_batch(_under(batch, shown))
    else:
        with pa.ipc.new_stream(stream, shown) as writer:
            yield lambda batch: writer.write_batch(_under(batch, shown))


def _under(batch: pa.RecordBatch, shown: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(batch.columns, schema=shown)


class _CsvWriter:
    """Each batch is formatted by itself, so the header is written once, separately."""

    def __init__(self, kind: GraphType, stream: Any) -> None:
        self._kind = kind
        self._stream = stream

    def __enter__(self) -> _CsvWriter:
        self._put(to_csv_columns(self._kind, _empty(self._kind)), header=True)
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def write(self, batch: pa.RecordBatch) -> None:
        self._put(to_csv_columns(self._kind, batch), header=False)

    def _put(self, batch: pa.RecordBatch, *, header: bool) -> None:
        sink = pa.BufferOutputStream()
        options = pcsv.WriteOptions(include_header=header)
        pcsv.write_csv(pa.Table.from_batches([batch]), sink, write_options=options)
        self._stream.write(sink.getvalue().to_pybytes())


def _empty(kind: GraphType) -> pa.RecordBatch:
    schema = row_schema(kind)
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
