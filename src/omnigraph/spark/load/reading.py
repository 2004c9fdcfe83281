"""Owns reading the sources of a load on executors, each part once: a part that an earlier run of
the job has read is not read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import msgspec

from omnigraph.engine.load.rejected import RejectedFile
from omnigraph.engine.load.sources import InputSource
from omnigraph.engine.load.spool import SpoolPiece
from omnigraph.plan.load.places import Reject
from omnigraph.spark.load.frame_sources import FrameSource, LoadSource, stamp
from omnigraph.spark.load.journal import Journal
from omnigraph.spark.load.shape import (
    FilePart,
    ShapedPart,
    ShapeJob,
    plan_parts,
    shape_frame,
    shape_part,
    shape_source,
)
from omnigraph.spark.tasks import ANSWERS, Failure, collect_answers, run_tasks


@dataclass
class ReadSources:
    """Typed rows by table, with their places in the sources."""

    pieces: dict[str, list[SpoolPiece]] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)
    aside: list[RejectedFile] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    more: int = 0
    rows: int = 0
    bytes: int = 0


def read_sources(
    spark: Any, sources: Sequence[LoadSource], shape: ShapeJob, journal: Journal | None
) -> ReadSources:
    answers = [
        *_files(spark, sources, shape, journal),
        *_frames(sources, shape, journal),
        *_streams(sources, shape, journal),
    ]
    read = ReadSources()
    shifts: dict[int, int] = {}
    for number, answer in sorted(answers, key=lambda found: found[0]):
        if answer.failure is not None:
            read.failures.append(answer.failure)
        shift = shifts.get(number, 0)
        shifts[number] = shift + answer.lines
        read.rejects += [replace(r, line=r.line + shift) for r in answer.rejects]
        read.aside += [msgspec.structs.replace(one, shift=shift) for one in answer.aside]
        read.more += answer.more
        read.bytes += answer.bytes
        for piece in answer.pieces:
            read.rows += piece.rows
            shifted = msgspec.structs.replace(piece, shift=shift)
            read.pieces.setdefault(piece.table, []).append(shifted)
    return read


def _files(
    spark: Any, sources: Sequence[LoadSource], shape: ShapeJob, journal: Journal | None
) -> list[tuple[int, ShapedPart]]:
    parts: list[FilePart] = []
    stamps: dict[int, list[Any]] = {}
    for number, source in enumerate(sources):
        if isinstance(source, InputSource) and source.path is not None:
            parts += plan_parts(number, source)
            stamps[number] = stamp(source)
    answers = run_tasks(
        spark,
        partial(shape_part, shape),
        parts,
        ShapedPart,
        journal=journal,
        name=lambda part: shape.name(part.number, part.cut, stamps[part.number]),
    )
    return [(parts[task].number, answer) for task, answer in answers]


def _frames(
    sources: Sequence[LoadSource], shape: ShapeJob, journal: Journal | None
) -> list[tuple[int, ShapedPart]]:
    """Of an earlier run, either all of a DataFrame is reused or nothing: when it is evaluated
    again, its rows may be in other partitions."""
    found: list[tuple[int, ShapedPart]] = []
    for number, source in enumerate(sources):
        if isinstance(source, FrameSource):
            frame = source.frame.mapInArrow(shape_frame(shape, number, source.type), ANSWERS)

            def read(frame: Any = frame) -> Iterator[ShapedPart]:
                return (answer for _, answer in collect_answers(frame, ShapedPart))

            found += _once(journal, shape.name(number, "frame", []), number, read)
    return found


def _streams(
    sources: Sequence[LoadSource], shape: ShapeJob, journal: Journal | None
) -> list[tuple[int, ShapedPart]]:
    """Sources that only this process can read."""
    found: list[tuple[int, ShapedPart]] = []
    for number, source in enumerate(sources):
        if isinstance(source, InputSource) and source.path is None:

            def read(number: int = number, source: InputSource = source) -> Iterator[ShapedPart]:
                yield shape_source(shape, number, source)

            found += _once(journal, shape.name(number, "stream", []), number, read)
    return found


def _once(
    journal: Journal | None, name: str, number: int, read: Callable[[], Iterator[ShapedPart]]
) -> list[tuple[int, ShapedPart]]:
    answers = list(read()) if journal is None else journal.once(name, ShapedPart, read)
    return [(number, answer) for answer in answers]
