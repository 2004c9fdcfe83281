"""Owns refusing rows: rows that a join finds take no further part, and executors report the place,
the reason and the values of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.load.rejected import FEW, RejectedFile, write_rejected_file
from omnigraph.engine.load.spool import Spool, SpoolPiece
from omnigraph.engine.load.state import TOLD, shown_rows
from omnigraph.plan.load.places import AT, Reject, SourceName, to_reject
from omnigraph.plan.rules.book import Rule, describe
from omnigraph.spark.load.state import SparkState
from omnigraph.spark.tasks import collect, explained, run_tasks

_AT_ONCE = 10_000


class ToldRows(msgspec.Struct, frozen=True, kw_only=True):
    """By place if they are few, in files if they are many."""

    few: dict[int, Reject] = {}
    files: tuple[RejectedFile, ...] = ()


@dataclass(frozen=True)
class TellJob:
    """`found` are the rows that a join found, by `place`, or the name of a file with them if they
    are many."""

    spool: Spool
    pieces: Sequence[SpoolPiece]
    names: tuple[SourceName, ...]
    rule: Rule
    found: pa.Table | str


def refuse(state: SparkState, rule: Rule, frame: Any) -> int:
    """Refuses the rows of a DataFrame, by `place`, and returns their number. Unless wrong rows are
    set aside, they stay in the load: rows that depend on them are not wrong for that."""
    found, count = _take(state, frame)
    if not count:
        return 0
    told = found.slice(0, state.named(found.num_rows))
    state.more += count - told.num_rows
    if told.num_rows:
        _report(state, rule, told)
    if state.every:
        state.drop(rule.kind, found["place"].to_numpy())
    return count


def _take(state: SparkState, frame: Any) -> tuple[pa.Table, int]:
    if state.every:
        found = collect(frame).sort_by("place")
        return found, found.num_rows
    found = collect(frame.limit(TOLD))
    if found.num_rows < TOLD:
        return found.sort_by("place"), found.num_rows
    with explained():
        return collect(frame.orderBy("place").limit(TOLD)), int(frame.count())


def _report(state: SparkState, rule: Rule, told: pa.Table) -> None:
    """Rows are reported as they came, so the original pieces are read and not merged ones."""
    few = told.num_rows <= FEW
    held = state.types[rule.kind.table_key].given
    job = TellJob(
        spool=state.spool,
        pieces=held,
        names=tuple(state.names),
        rule=rule,
        found=told if few else state.spool.write(f"found-{uuid4().hex}.arrow", told),
    )
    answers = run_tasks(state.spark, partial(tell_piece, job), range(len(held)), ToldRows)
    by_place = {place: one for _, answer in answers for place, one in answer.few.items()}
    state.rejects += [by_place[place] for place in sorted(by_place)]
    state.files += [one for _, answer in answers for one in answer.files]


def tell_piece(job: TellJob, number: int) -> Iterator[ToldRows]:
    few = not isinstance(job.found, str)
    found = job.spool.table(job.found) if isinstance(job.found, str) else job.found
    places = found["place"].combine_chunks()
    rows = job.spool.read(job.pieces[number])
    rows = rows.filter(pc.is_in(rows[AT], value_set=places))
    by_place: dict[int, Reject] = {}
    files: list[RejectedFile] = []
    for start in range(0, rows.num_rows, _AT_ONCE):
        part = rows.slice(start, _AT_ONCE)
        why = found.take(pc.index_in(part[AT], value_set=places))
        rejects = _rejects(job, part, why)
        if few:
            by_place |= rejects
        else:
            files.append(write_rejected_file(job.spool, list(rejects.values())))
    if rows.num_rows:
        yield ToldRows(few=by_place, files=tuple(files))


def _rejects(job: TellJob, rows: pa.Table, why: pa.Table) -> dict[int, Reject]:
    texts = shown_rows(rows, rows[AT].to_numpy())
    told: dict[int, Reject] = {}
    for row in why.to_pylist():
        entity, text = texts[row["place"]]
        violation = describe(job.rule, {"id": entity, "text": row.get("k0")} | row)
        told[row["place"]] = to_reject(
            job.names, row["place"], violation, entity, text, row.get("first")
        )
    return told


def report_refused(state: SparkState, rule: Rule, frame: Any) -> None:
    """Refuses the load for an error that no single row causes."""
    examples = collect(frame.limit(TOLD))
    total = examples.num_rows
    if total == TOLD:
        with explained():
            total = int(frame.count())
    state.unblamed += [describe(rule, {"n": 0} | row) for row in examples.to_pylist()]
    state.more += total - examples.num_rows
