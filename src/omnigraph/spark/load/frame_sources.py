"""Owns the sources of a load on Spark: DataFrames, and everything that a load in one process
accepts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omnigraph.engine.graph_view import GraphView, find_type
from omnigraph.engine.load.sources import InputSource, find_sources
from omnigraph.errors import InvalidArgument
from omnigraph.model.catalog import GraphType
from omnigraph.plan.load.places import SourceName


@dataclass(frozen=True)
class FrameSource:
    """A DataFrame whose rows are all of one type."""

    name: str
    frame: Any
    type: str

    @property
    def label(self) -> SourceName:
        return SourceName(self.name, "row")

    size = None


LoadSource = InputSource | FrameSource


def find_frame_sources(source: Any, type: str | None, mapping: Any) -> list[LoadSource]:
    if isinstance(source, list) and source and all(isinstance(one, LoadSource) for one in source):
        return source
    if is_frame(source):
        if type is None or mapping is not None:
            raise InvalidArgument(
                "Rows of a DataFrame do not say what they are.",
                help="Give their type: g.load(frame, type='Person'), after you have given the "
                "columns the names of the properties.",
            )
        return [FrameSource("rows", source, type)]
    if isinstance(source, Mapping) and source and all(map(is_frame, source.values())):
        if type is not None:
            raise InvalidArgument("Give `type` or DataFrames by type, not both.")
        return [FrameSource(name, frame, name) for name, frame in source.items()]
    return [_absolute(found) for found in find_sources(source, type, mapping)]


def is_frame(source: Any) -> bool:
    return source.__class__.__module__.startswith("pyspark.") and hasattr(source, "mapInArrow")


def kind_of(source: LoadSource, snapshot: GraphView) -> GraphType | None:
    """The type of every row of a source, or None if each row names its own."""
    if isinstance(source, FrameSource):
        return find_type(snapshot.catalog, source.type)
    return source.kind(snapshot.catalog)


def _absolute(source: InputSource) -> InputSource:
    """Executors have working directories of their own."""
    if source.path is None:
        return source
    return replace(source, path=Path(os.path.abspath(source.path)))  # noqa: PTH100


def call_parts(source: LoadSource) -> list[Any]:
    """What distinguishes this source from others, for a job that runs again. Its rows are not read:
    a caller that reuses the name of a job promises the same rows."""
    if isinstance(source, FrameSource):
        return ["frame", source.name, source.type, source.frame.schema.simpleString()]
    return [source.format, source.name, str(source.path or ""), source.type, source.columns]


def stamp(source: InputSource) -> list[Any]:
    """A value that changes when the file does."""
    if source.path is None:
        return []
    held = source.path.stat()
    return [str(source.path), held.st_size, held.st_mtime_ns]
