"""Owns export on executors: each type in as many files as it has parts, either all of them or
none."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from omnigraph.engine.export import ExportResult, file_stem, write_batches
from omnigraph.engine.graph_view import GraphView
from omnigraph.errors import InvalidArgument
from omnigraph.model.catalog import GraphType
from omnigraph.spark.cluster import require_reachable
from omnigraph.spark.pinned import PinnedTable, group_fragments, pin_table
from omnigraph.spark.tasks import run_tasks
from omnigraph.store.roots import Root
from omnigraph.telemetry import Ledger

PART_ROWS = 1024 * 1024


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    part: str
    rows: int


@dataclass(frozen=True)
class ExportTask:
    """Some fragments of a table as one file, `Person.00003.parquet`, which load recognises as a
    file of persons."""

    pinned: PinnedTable
    fragments: tuple[int, ...]
    path: str
    format: str

    def write(self) -> Iterator[Exported]:
        path = Path(self.path)
        part = path.with_name(f".{path.name}.{uuid4().hex}.part")  # for this attempt only
        view = self.pinned.view()
        batches = view.scan(Ledger(), fragments=self.fragments) if self.fragments else iter(())
        with part.open("wb") as stream:
            rows = write_batches(view.kind, self.format, stream, batches)
        yield Exported(part=str(part), rows=rows)


def export_on(
    spark: Any,
    root: Root,
    snapshot: GraphView,
    kinds: Sequence[GraphType],
    format: str,
    to: Any,
) -> ExportResult:
    """The files get their names once all of them are complete."""
    if not isinstance(to, str | os.PathLike) or str(to) == "-" or Path(to).is_file():
        raise InvalidArgument("An export on Spark goes to a directory, with files for each type.")
    place = Path(os.path.abspath(to))  # noqa: PTH100 - executors have directories of their own
    require_reachable(spark, root)
    require_reachable(spark, Root(str(place), place))
    place.mkdir(parents=True, exist_ok=True)
    tasks = [task for kind in kinds for task in _tasks(root, snapshot, kind, format, place)]
    try:
        answers = run_tasks(spark, ExportTask.write, tasks, Exported)
        counts: dict[str, int] = {}
        for number, answer in answers:
            Path(answer.part).replace(tasks[number].path)
            kind = tasks[number].pinned.kind
            name = kind.name if _is_only(snapshot, kind) else kind.table_key
            counts[name] = counts.get(name, 0) + answer.rows
    finally:
        for task in tasks:
            for left in place.glob(f".{Path(task.path).name}.*.part"):
                with contextlib.suppress(OSError):
                    left.unlink()
    files = tuple(Path(task.path) for task in tasks)
    return ExportResult(snapshot.commit.id, format, counts, files, snapshot.io)


def _tasks(
    root: Root, snapshot: GraphView, kind: GraphType, format: str, place: Path
) -> Iterator[ExportTask]:
    pinned = pin_table(root, snapshot, kind)
    marks = snapshot.view(kind).table.marks.values()
    groups = group_fragments([(mark.id, mark.rows) for mark in marks], PART_ROWS) or [()]
    stem = file_stem(snapshot.catalog, kind)
    for number, fragments in enumerate(groups):
        name = f"{stem}.{format}" if len(groups) == 1 else f"{stem}.{number:05}.{format}"
        yield ExportTask(pinned, fragments, str(place / name), format)


def _is_only(snapshot: GraphView, kind: GraphType) -> bool:
    """Whether no other type has the same name."""
    catalog = snapshot.catalog
    return not (kind.name in catalog.node_names and kind.name in catalog.edge_names)
