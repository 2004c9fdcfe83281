"""Owns pipelines: several sources, each with its mapping to a type, that become one commit.

Pipeline(g, mode="merge", job="nightly")
    .source(people, type="Person", columns={"name": "full_name", "age": col("years") + 1})
    .source("knows/*.parquet", type="Knows", columns={"from": "a", "to": "b"})
    .run()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.load.progress import OnLoadProgress
from omnigraph.engine.load.result import LoadResult
from omnigraph.engine.load.sources import InputSource
from omnigraph.errors import InvalidArgument
from omnigraph.model.options import CommitWords, read_options
from omnigraph.plan.load.mapping import MappedSource, parse_mapping, read_mapping
from omnigraph.spark.frames import split_frames
from omnigraph.spark.load.frame_sources import FrameSource, LoadSource, find_frame_sources, is_frame
from omnigraph.spark.load.run import load
from omnigraph.spark.session import session as open_session

if TYPE_CHECKING:
    from omnigraph.engine.branch import Branch

_MODES = ("append", "merge", "overwrite")
_ON_ERROR = ("abort", "quarantine")


class Pipeline:
    """What `run` will load, as one commit or not at all. The graph is
    open, or a branch of it; the options are those of `load`."""

    def __init__(
        self,
        graph: Branch,
        *,
        spark: Any = None,
        mode: Literal["append", "merge", "overwrite"] = "append",
        new_branch: str | None = None,
        ref: str | None = None,
        on_error: Literal["abort", "quarantine"] = "abort",
        job: str | None = None,
        progress: OnLoadProgress | None = None,
        **commit: Unpack[CommitWords],
    ) -> None:
        for name, value, allowed in (("mode", mode, _MODES), ("on_error", on_error, _ON_ERROR)):
            if value not in allowed:
                listed = ", ".join(map(repr, allowed))
                raise InvalidArgument(f"`{name}` is one of {listed}, not {value!r}.")
        self._graph = graph
        self._spark = spark
        self._options = LoadOptions(
            mode=mode,
            branch=graph.name if new_branch is None else new_branch,
            create_branch_from=None if new_branch is None else ref or graph.name,
            on_error=on_error,
            engine="spark",
            job=job,
            progress=progress,
            commit=read_options(commit),
        )
        self._sources: list[LoadSource] = []

    def source(
        self,
        source: Any,
        *,
        type: str | None = None,
        columns: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Pipeline:
        """Adds a DataFrame, or files, streams and rows as `Graph.load` takes them. `columns` says
        where each property (and `id`, `from`, `to`) comes from: the name of a column, or, of a
        DataFrame, an expression. Without it columns are called what the properties are. Messages
        call a DataFrame by `name`."""
        if is_frame(source):
            if type is None:
                raise InvalidArgument("Rows of a DataFrame do not say what they are: give `type`.")
            self._sources.append(_frame(source, type, columns, name or self._name_for(type)))
            return self
        found = find_frame_sources(source, type, None)
        if columns:
            found = [_with_columns(one, columns) for one in found]
        if name is not None and len(found) == 1:
            found = [replace(found[0], name=name)]
        self._sources += found
        return self

    def mapping(
        self,
        mapping: Any,
        *,
        directory: Any = None,
        frames: Mapping[str, Any] | None = None,
    ) -> Pipeline:
        """Adds every source that a mapping names: a TOML file, or what it would hold as a dict. A
        `file` that is one of the `frames` means that DataFrame; others lie in `directory`, which is
        that of the mapping unless it is given."""
        if isinstance(mapping, Mapping):
            base, entries = Path(), read_mapping(mapping, "given")
        else:
            path = Path(mapping)
            if not path.is_file():
                raise InvalidArgument(f"There is no mapping file {mapping}.")
            base = path.parent
            entries = parse_mapping(path.read_text(encoding="utf-8"), path.name)
        held = frames or {}
        for entry in entries:
            if entry.file in held:
                frame = held[entry.file]
                self._sources.append(_frame(frame, entry.type, entry.columns, entry.file))
            else:
                self._sources += find_frame_sources(directory or base, None, _one(entry))
        return self

    def frames(
        self,
        vertices: Any,
        edges: Any,
        *,
        node_type: str | None = None,
        edge_type: str | None = None,
    ) -> Pipeline:
        """Adds a graph in the shape of GraphFrames: `vertices` with `id`, `edges` with `src` and
        `dst`. A column `_type` says of which type a row is, or all are of the types that are
        named. Columns that the type does not have are left out; a key that is no column is the
        id."""
        catalog = self._graph.snapshot().catalog
        for kind, columns, rows in split_frames(catalog, vertices, edges, node_type, edge_type):
            self.source(rows, type=kind.name, columns=columns)
        return self

    def run(self) -> LoadResult:
        """Loads everything that was added."""
        if not self._sources:
            raise InvalidArgument("The pipeline has no source.")
        self._graph._require_open(writing=True)  # noqa: SLF001
        spark = self._spark or open_session()
        session = self._graph._session  # noqa: SLF001
        return load(spark, session, list(self._sources), self._options, "a pipeline")

    def _name_for(self, type: str) -> str:
        """Two DataFrames of one type are told apart by their number."""
        taken = {source.name for source in self._sources}
        number = 2
        name = type
        while name in taken:
            name, number = f"{type} {number}", number + 1
        return name


def _one(entry: MappedSource) -> dict[str, Any]:
    ends = {key: entry.columns[key] for key in ("from", "to", "id") if key in entry.columns}
    columns = {key: value for key, value in entry.columns.items() if key not in ends}
    return {"source": [{"file": entry.file, "type": entry.type, "columns": columns, **ends}]}


def _with_columns(source: LoadSource, columns: Mapping[str, Any]) -> LoadSource:
    if not all(isinstance(value, str) for value in columns.values()):
        raise InvalidArgument(
            f"Expressions are for DataFrames, and {source.name} is a file.",
            help="Read it with Spark first: .source(spark.read.parquet(path), …).",
        )
    if not isinstance(source, InputSource) or source.type is None:
        raise InvalidArgument(f"`columns` need a `type`, and rows of {source.name} name their own.")
    return replace(source, columns=dict(columns))


def _frame(frame: Any, type: str, columns: Mapping[str, Any] | None, name: str) -> FrameSource:
    if not is_frame(frame):
        raise InvalidArgument(f"{name} is not a DataFrame of Spark.")
    return FrameSource(name, map_columns(frame, columns, name) if columns else frame, type)


def map_columns(frame: Any, columns: Mapping[str, Any], name: str) -> Any:
    """A DataFrame with the columns that a mapping makes of it; `name` is what messages call it."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as sql

    for value in columns.values():
        if isinstance(value, str) and value.split(".")[0] not in frame.columns:
            raise InvalidArgument(
                f"{name} has no column {value!r}, which the mapping names.",
                help=f"Its columns are {', '.join(frame.columns)}.",
            )
    chosen = [
        (
            sql.col(f"`{value}`" if value in frame.columns else value)
            if isinstance(value, str)
            else value
        ).alias(key)
        for key, value in columns.items()
    ]
    try:
        mapped = frame.select(*chosen)
        mapped.schema  # noqa: B018 - over Spark Connect only this asks
    except AnalysisException as error:
        told = str(error).strip().split("\n", 1)[0]
        raise InvalidArgument(f"The mapping does not fit {name}: {told}") from error
    return mapped
