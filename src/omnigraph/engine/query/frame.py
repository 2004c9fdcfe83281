"""Owns the frame: rows of a match in progress, with a number for each variable.

A number below zero is null. `counts` says how often each row occurs; None means once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from omnigraph.errors import ValueOutOfRange

_EXACT = 2.0**53
_LARGEST = 2.0**63
_SAMPLE = 4096


@dataclass(frozen=True)
class Frame:
    columns: dict[int, np.ndarray]
    rows: int
    counts: np.ndarray | None = None

    @staticmethod
    def unit() -> Frame:
        """One row without variables, where every match begins."""
        return Frame({}, 1)

    def take(self, indices: np.ndarray) -> Frame:
        columns = {key: column[indices] for key, column in self.columns.items()}
        counts = None if self.counts is None else self.counts[indices]
        return Frame(columns, len(indices), counts)

    def slice(self, start: int, stop: int) -> Frame:
        columns = {key: column[start:stop] for key, column in self.columns.items()}
        counts = None if self.counts is None else self.counts[start:stop]
        return Frame(columns, min(stop, self.rows) - start, counts)

    def only(self, variables: frozenset[int]) -> Frame:
        columns = {key: column for key, column in self.columns.items() if key in variables}
        return Frame(columns, self.rows, self.counts)

    def adding(self, variable: int, numbers: np.ndarray) -> Frame:
        return Frame(self.columns | {variable: numbers}, self.rows, self.counts)

    def times(self, factors: np.ndarray) -> Frame:
        """Each row as often as before, times a factor."""
        if self.counts is None:
            return Frame(self.columns, self.rows, factors)
        total = float(np.dot(self.counts.astype(np.float64), factors.astype(np.float64)))
        _check_total(total)
        return Frame(self.columns, self.rows, self.counts * factors)

    @property
    def multiplicity(self) -> np.ndarray:
        return np.ones(self.rows, np.int64) if self.counts is None else self.counts

    @property
    def total(self) -> int:
        return self.rows if self.counts is None else int(self.counts.sum())

    @property
    def nbytes(self) -> int:
        columns = sum(column.nbytes for column in self.columns.values())
        return columns + (0 if self.counts is None else self.counts.nbytes)

    def expanded(self) -> Frame:
        """The same rows, each repeated as often as it occurs."""
        if self.counts is None:
            return self
        return Frame(self.columns, self.rows).take(np.repeat(np.arange(self.rows), self.counts))

    def pieces(self, rows: int) -> Iterator[Frame]:
        """The same rows, repeated, with at most this many at a time."""
        if self.total <= rows:
            yield self.expanded()
            return
        if self.counts is None:
            for start in range(0, self.rows, rows):
                yield self.slice(start, start + rows)
            return
        ends = np.cumsum(self.counts)
        begins = ends - self.counts
        for start in range(0, int(ends[-1]), rows):
            stop = min(start + rows, int(ends[-1]))
            low = int(np.searchsorted(ends, start, side="right"))
            high = int(np.searchsorted(begins, stop, side="left"))
            counts = np.minimum(ends[low:high], stop) - np.maximum(begins[low:high], start)
            part = self.slice(low, high)
            yield Frame(part.columns, part.rows, counts).expanded()


def concat(frames: Sequence[Frame]) -> Frame:
    if len(frames) == 1:
        return frames[0]
    keys = frames[0].columns.keys()
    columns = {key: np.concatenate([f.columns[key] for f in frames]) for key in keys}
    counts = None
    if any(f.counts is not None for f in frames):
        counts = np.concatenate([f.multiplicity for f in frames])
    return Frame(columns, sum(f.rows for f in frames), counts)


def handed_over(frames: list[Frame]) -> Iterator[Frame]:
    """The frames of a list that drops each one as it is passed on, so that its memory is free."""
    frames.reverse()
    while frames:
        yield frames.pop()


def rows_repeat(frame: Frame, variables: frozenset[int]) -> bool:
    """Whether a sample suggests that many rows agree in these variables. This is asked before many
    rows are compared in vain: edges, for example, occur once."""
    if frame.rows < 1 << 14 or not variables:
        return True
    sample = [column[:_SAMPLE] for key, column in frame.columns.items() if key in variables]
    codes, _ = _one_code(sample)
    return codes is not None and len(np.unique(codes)) < 0.9 * _SAMPLE


def merge_alike(frame: Frame, variables: frozenset[int]) -> Frame:
    """Keeps only these variables. Rows that agree in them become one, with the sum of their
    counts."""
    columns = {key: column for key, column in frame.columns.items() if key in variables}
    kept = Frame(columns, frame.rows, frame.counts)
    if not columns:
        if frame.counts is not None:
            _check_total(float(frame.counts.sum(dtype=np.float64)))
        return Frame({}, 1, np.array([frame.total])) if frame.rows else Frame({}, 0)
    if frame.rows < 2:
        return kept
    keys = list(columns)
    codes, spans = _one_code([columns[key] for key in keys])
    if codes is None:
        return kept
    distinct, sums = _sum_by_code(codes, spans, frame.multiplicity)
    merged: dict[int, np.ndarray] = {}
    for key, (low, span) in reversed(list(zip(keys, spans, strict=True))):
        merged[key] = distinct % span + low
        distinct = distinct // span
    return Frame({key: merged[key] for key in keys}, len(sums), sums)


def _one_code(
    columns: Sequence[np.ndarray],
) -> tuple[np.ndarray | None, list[tuple[int, int]]]:
    """One number for each row, computed from the ranges of the columns. None if it would not
    fit."""
    spans = []
    size = 1
    for column in columns:
        low = int(column.min())
        span = int(column.max()) - low + 1
        spans.append((low, span))
        size *= span
    if size >= 2**62:
        return None, spans
    codes = columns[0] - spans[0][0]
    for column, (low, span) in zip(columns[1:], spans[1:], strict=True):
        codes = codes * span + (column - low)
    return codes, spans


def _sum_by_code(
    codes: np.ndarray, spans: Sequence[tuple[int, int]], counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    size = 1
    for _, span in spans:
        size *= span
    total = float(counts.sum(dtype=np.float64))
    _check_total(total)
    dense = size <= 4 * len(codes) + 1024 or (size <= 1 << 20 and size <= 64 * len(codes))
    if dense and total < _EXACT:
        sums = np.bincount(codes, weights=counts, minlength=size)
        distinct = np.flatnonzero(sums)
        return distinct, sums[distinct].astype(np.int64)
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[starts], np.add.reduceat(counts[order], starts)


def _check_total(total: float) -> None:
    if total >= _LARGEST:
        raise ValueOutOfRange(
            "The number of rows of this pattern does not fit 64 bits.",
            help="Count fewer hops, or filter on the way.",
        )
