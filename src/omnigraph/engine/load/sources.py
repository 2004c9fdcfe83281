"""Owns the sources of a load: paths, directories, globs, streams and rows, each with a name, a
format and the type that it holds. This module opens them; `reading` reads them."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import InvalidArgument
from omnigraph.model.catalog import Catalog, GraphType
from omnigraph.plan.load.engine_choice import BYTES_A_ROW
from omnigraph.plan.load.mapping import MappedSource, parse_mapping, read_mapping
from omnigraph.plan.load.places import SourceName

Format = Literal["jsonl", "csv", "parquet", "arrow", "rows"]
_FORMATS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_COMPRESSED = 4  # a guess at how much larger a compressed file becomes


def source_names(given: Any) -> tuple[str, ...]:
    """The full paths of files given by name, without opening them. Rows have no names."""
    if isinstance(given, Mapping):
        return tuple(f"{key}={name}" for key, one in given.items() for name in source_names(one))
    held = given if isinstance(given, list | tuple) else [given]
    if not all(isinstance(one, str | os.PathLike) and one != "-" for one in held[:1]):
        return ()
    return tuple(_told(one) for one in held if isinstance(one, str | os.PathLike))


def _told(one: str | os.PathLike[str]) -> str:
    """A file that was made of something sent is that content, wherever the file is."""
    digest = getattr(one, "content_digest", None)
    return digest if isinstance(digest, str) else _whole(one)


def _whole(path: str | os.PathLike[str]) -> str:
    try:
        return str(Path(path).absolute())
    except FileNotFoundError:  # the working directory is gone, and the file with it
        return os.fspath(path)


@dataclass(frozen=True)
class InputSource:
    """One file, stream or set of rows. `type` is the name that the caller, the mapping or the file
    name gives; a JSONL file without one names the type on every line. `row_groups` selects row
    groups of a Parquet file, None all of them."""

    name: str
    format: Format
    path: Path | None = None
    stream: Any = field(default=None, repr=False)
    rows: Any = field(default=None, repr=False)
    type: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    compression: str | None = None
    row_groups: tuple[int, ...] | None = None

    @property
    def label(self) -> SourceName:
        return SourceName(self.name, "line" if self.format in ("jsonl", "csv") else "row")

    @property
    def size(self) -> int | None:
        """In bytes, for a file."""
        return None if self.path is None else self.path.stat().st_size

    def kind(self, catalog: Catalog) -> GraphType | None:
        """The type of every row, or None if each row names its own."""
        if self.type is None:
            return None
        kind = catalog.find(self.type)
        if kind is None and self.type[:5] in ("node-", "edge-"):
            kind = catalog.by_key.get(f"{self.type[:4]}:{self.type[5:]}")
        if kind is None:
            from omnigraph.engine.graph_view import find_type

            return find_type(catalog, self.type)
        return kind

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The bytes of the file or stream, decompressed as they are read."""
        if self.path is None:
            yield self.stream
            return
        if self.compression is None:
            with self.path.open("rb") as file:
                yield file
        else:
            with pa.OSFile(str(self.path), "rb") as packed:
                yield pa.CompressedInputStream(packed, self.compression)

    def open_natively(self) -> pa.NativeFile:
        """The bytes, for a native reader whose threads read ahead, perhaps for a while after the
        caller gave up. So there is no Python object behind them: a thread that needs the
        interpreter while it shuts down kills the process or waits for ever. Only the last holder
        closes the file: the number of a file that was closed under a reader may already belong to
        another file."""
        file = pa.OSFile(str(self.path), "rb")
        if self.compression is None:
            return file
        return pa.CompressedInputStream(file, self.compression)


def find_sources(source: Any, type: str | None, mapping: Any) -> list[InputSource]:
    """Every source that the argument describes, in a fixed order."""
    if mapping is not None:
        if type is not None:
            raise InvalidArgument("Give `type` or `mapping`, not both: the mapping names types.")
        return _mapped(source, mapping)
    if isinstance(source, str | os.PathLike):
        if str(source) == "-":
            return [_stream(sys.stdin.buffer, "stdin", type)]
        return _from_path(str(source), type)
    if isinstance(source, list | tuple) and source and _are_paths(source):
        return [found for path in source for found in _from_path(str(path), type)]
    if hasattr(source, "read"):
        return [_stream(source, _stream_name(source), type)]
    if source is None:
        raise InvalidArgument("There is nothing to load: `source` is None.")
    if isinstance(source, bytes | bytearray | int | float):
        raise InvalidArgument(
            f"A load takes a path, a stream or rows, not {source.__class__.__name__}."
        )
    if type is None and _needs_type(source):
        raise InvalidArgument(
            "Rows of a data frame or an Arrow table do not say what they are.",
            help="Give their type: g.load(rows, type='Person').",
        )
    return [InputSource("rows", "rows", rows=source, type=type)]


def _are_paths(items: Iterable[Any]) -> bool:
    return all(isinstance(item, str | os.PathLike) for item in items)


def _needs_type(source: Any) -> bool:
    return (
        hasattr(source, "__arrow_c_stream__")
        or hasattr(source, "__arrow_c_array__")
        or source.__class__.__name__ == "DataFrame"
        or isinstance(source, pa.RecordBatchReader)
    )


def _stream(stream: Any, name: str, type: str | None) -> InputSource:
    """A stream is JSONL. Text streams are read through the bytes below them."""
    return InputSource(name, "jsonl", stream=getattr(stream, "buffer", stream), type=type)


def _stream_name(stream: Any) -> str:
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) else "stream"


def _from_path(text: str, type: str | None) -> list[InputSource]:
    path = Path(text)
    if path.is_dir():
        if (path / "_graph.json").is_file():
            raise InvalidArgument(
                f"{text} is a graph, not a directory of files to load.",
                help="Export it first, or merge a branch of it.",
            )
        files = sorted(p for p in path.iterdir() if p.is_file() and _format_of(p) is not None)
        if not files:
            raise InvalidArgument(
                f"The directory {text} holds nothing to load.", help=_known_formats()
            )
        return [_file(p, type) for p in files]
    if path.exists():
        if path.suffix == ".toml":
            return _mapped(None, path)
        return [_file(path, type)]
    if glob.has_magic(text):
        files = [Path(p) for p in sorted(glob.glob(text, recursive=True))]  # noqa: PTH207
        files = [p for p in files if p.is_file()]
        if files:
            return [_file(p, type) for p in files]
        raise InvalidArgument(f"No file matches {text}.")
    raise InvalidArgument(f"There is no file {text}.")


def _known_formats() -> str:
    return "Files end in .jsonl, .csv, .parquet or .arrow, JSONL and CSV also in .gz and .zst."


def _format_of(path: Path) -> Format | None:
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    return _FORMATS.get(suffixes[-1]) if suffixes else None


def _file(path: Path, type: str | None, columns: Mapping[str, str] | None = None) -> InputSource:
    held = _format_of(path)
    if held is None:
        raise InvalidArgument(f"What {path} holds cannot be told.", help=_known_formats())
    compression = _COMPRESSIONS.get(path.suffix.lower())
    if compression is not None and held not in ("jsonl", "csv"):
        raise InvalidArgument(f"{path} must not be compressed; {held} compresses by itself.")
    stem = None if held == "jsonl" else path.name.split(".")[0]
    return InputSource(
        path.name,
        held,
        path=path,
        type=stem if type is None else type,
        columns=dict(columns or {}),
        compression=compression,
    )


def _mapped(source: Any, mapping: Any) -> list[InputSource]:
    base = Path()
    if isinstance(mapping, Mapping):
        entries = read_mapping(mapping, "given")
    elif not isinstance(mapping, str | os.PathLike):
        raise InvalidArgument(f"A mapping is a file or a dict, not {type(mapping).__name__}.")
    else:
        path = Path(mapping)
        if not path.is_file():
            raise InvalidArgument(f"There is no mapping file {mapping}.")
        base = path.parent
        entries = parse_mapping(_text_of(path), path.name)
    if source is not None:
        if not isinstance(source, str | os.PathLike):
            raise InvalidArgument("With a mapping, `source` is the directory of its files.")
        base = Path(source)
        if not base.is_dir():
            raise InvalidArgument(f"With a mapping, `source` is the directory of its files: {base}")
    return [found for entry in entries for found in _mapped_files(base, entry)]


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgument(
            f"The mapping {path} is not a text in UTF-8: byte {error.start + 1} is none."
        ) from None


def _mapped_files(base: Path, entry: MappedSource) -> list[InputSource]:
    text = str(base / entry.file)
    matches = sorted(glob.glob(text)) if glob.has_magic(text) else [text]  # noqa: PTH207
    if not matches or not all(Path(match).is_file() for match in matches):
        raise InvalidArgument(f"There is no file {text}, which the mapping names.")
    return [_file(Path(match), entry.type, entry.columns) for match in matches]


def estimate_rows(sources: Iterable[InputSource]) -> int | None:
    """From Parquet footers, otherwise bytes divided by 100; None if unknown."""
    total = 0
    for source in sources:
        if source.rows is not None:
            try:
                total += len(source.rows)
            except TypeError:
                return None
        elif source.path is None or source.size is None:
            return None
        elif source.format == "parquet":
            try:
                total += pq.read_metadata(source.path).num_rows
            except (OSError, ValueError, MemoryError, pa.ArrowException):
                return None  # reading it reports the error
        else:
            total += source.size * (_COMPRESSED if source.compression else 1) // BYTES_A_ROW
    return total
