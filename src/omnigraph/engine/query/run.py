"""Owns one run of a plan: what it reads, its parameters, its limits, and what its steps did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.cache import stopped_by
from omnigraph.engine.query.frame import Frame
from omnigraph.engine.query.gather import amount, batches
from omnigraph.engine.query.groups import pattern_aggregate
from omnigraph.engine.query.guard import Guard
from omnigraph.engine.query.leaves import FrameLeaves, objects_of
from omnigraph.engine.query.pattern import exists, run_pattern
from omnigraph.engine.query.search.ranking import best_rows
from omnigraph.engine.query.search.searches import EmbedText, Searches
from omnigraph.engine.query.workspace import Workspace
from omnigraph.lang.gq.checked import EdgeKind, Exists, NodeKind, PatternAggregate
from omnigraph.model.catalog import GraphType
from omnigraph.plan.query import ROW, Plan, Step, argument_variables
from omnigraph.plan.values import evaluate_array
from omnigraph.telemetry import Ledger


@dataclass
class Observation:
    """What a step did during `explain analyze`."""

    rows: int = 0
    batches: int = 0
    seconds: float = 0.0
    reads: int = 0
    read_bytes: int = 0


class Run:
    def __init__(
        self,
        plan: Plan,
        *,
        workspace: Workspace,
        parameters: Mapping[str, Any],
        guard: Guard,
        now: int,
        rows_in_memory: int,
        embed: EmbedText,
        observer: Observer | None = None,
    ) -> None:
        self.plan = plan
        self.entities = workspace.entities
        self.expander = workspace.expander
        self.parameters = parameters
        self.guard = guard
        self.now = now
        self.rows_in_memory = rows_in_memory
        query = plan.query
        self.is_lazy = query.limit is not None and not (
            query.order or query.group or query.distinct
        )
        self._observer = observer
        self._embed = embed

    @cached_property
    def searches(self) -> Searches:
        return Searches(self, self._embed)

    def batches(self) -> Iterator[pa.RecordBatch]:
        made = batches(self, self.plan, self.frames())
        try:
            while True:
                with stopped_by(self.guard.check):
                    batch = next(made, None)
                if batch is None:
                    return
                yield batch
        finally:
            if (close := getattr(made, "close", None)) is not None:
                close()

    def frames(self) -> Iterator[Frame]:
        """The rows of the match or, for a rank with a limit, those that can be among the best."""
        frames = run_pattern(self, self.plan.pattern, Frame.unit())
        if not self.plan.has_ranks:
            return frames
        limit = amount(self.plan.query.limit, self.parameters, "limit")
        offset = amount(self.plan.query.offset, self.parameters, "offset") or 0
        return best_rows(self, self.searches, frames, None if limit is None else limit + offset)

    def observed(self, step: Step, frames: Iterator[Frame]) -> Iterator[Frame]:
        return frames if self._observer is None else self._observer.watch(step, frames)

    # Entities

    def kinds(self, variable: int) -> Sequence[GraphType]:
        return self.plan.variables[variable].kind.types

    def ids(self, kinds: Sequence[GraphType], numbers: np.ndarray) -> pa.Array:
        return self.entities.values(kinds, ["id"] * len(kinds), numbers, pa.string())

    def objects(self, kind: NodeKind | EdgeKind, numbers: np.ndarray) -> pa.Array:
        return objects_of(self, kind, numbers)

    # Patterns inside expressions

    def exists(self, value: Exists, frame: Frame) -> np.ndarray:
        start, places = self._start(value, frame)
        found = exists(self, self.plan.inner[id(value.match)], start)
        chosen: np.ndarray = found[places]
        return chosen

    def aggregate_pattern(self, value: PatternAggregate, frame: Frame) -> pa.Array:
        start, places = self._start(value, frame)
        plan = self.plan.inner[id(value.match)]
        groups, counts, parts = [np.array([], np.int64)], [np.array([], np.int64)], []
        with self.guard.booking() as booked:
            for part in run_pattern(self, plan, start):
                groups.append(part.columns[ROW])
                counts.append(part.multiplicity)
                size = groups[-1].nbytes + counts[-1].nbytes
                if value.argument is not None:
                    parts.append(evaluate_array(value.argument, FrameLeaves(part, self)))
                    size += parts[-1].nbytes
                booked.add(2 * size)  # the parts, and then the whole
            values = None
            if value.argument is not None:
                empty = Frame({k: np.array([], np.int64) for k in self.plan.variables}, 0)
                parts.append(evaluate_array(value.argument, FrameLeaves(empty, self)))
                values = pa.concat_arrays(parts)
            found = pattern_aggregate(
                value.function,
                np.concatenate(groups),
                values,
                np.concatenate(counts),
                start.rows,
            )
        return found.take(pa.array(places))

    def _start(self, value: Exists | PatternAggregate, frame: Frame) -> tuple[Frame, np.ndarray]:
        """The distinct rows that a pattern depends on, numbered, and for each row the number of its
        distinct row."""
        outer = sorted(
            (set(value.match.outer) | argument_variables(value)) & frame.columns.keys() - {ROW}
        )
        if not outer:
            return Frame({ROW: np.zeros(1, np.int64)}, 1), np.zeros(frame.rows, np.int64)
        if len(outer) == 1:
            distinct, places = np.unique(frame.columns[outer[0]], return_inverse=True)
            columns = {outer[0]: distinct, ROW: np.arange(len(distinct))}
            return Frame(columns, len(distinct)), places
        columns = {key: frame.columns[key] for key in outer}
        columns[ROW] = np.arange(frame.rows)
        return Frame(columns, frame.rows), np.arange(frame.rows)


class Observer:
    """Watches steps for `explain analyze`: the rows, time and requests of each, without the steps
    below it."""

    def __init__(self, monotonic: Any, ledger: Ledger) -> None:
        self._monotonic = monotonic
        self._ledger = ledger
        self.found: dict[int, Observation] = {}
        self._inside: list[float] = []

    def watch(self, step: Step, frames: Iterator[Frame]) -> Iterator[Frame]:
        seen = self.found.setdefault(id(step), Observation())
        while True:
            began = self._monotonic()
            reads, size = self._ledger.reads, self._ledger.read_bytes
            frame = next(frames, None)
            seen.seconds += self._monotonic() - began
            seen.reads += self._ledger.reads - reads
            seen.read_bytes += self._ledger.read_bytes - size
            if frame is None:
                return
            seen.rows += frame.rows
            seen.batches += 1
            yield frame
