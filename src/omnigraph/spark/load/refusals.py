"""Owns refusing rows: those that a join finds take no further part, and executors tell of each
where it stood, why, and what it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.load.state import TOLD, shown_rows
from omnigraph.model.catalog import GraphType
from omnigraph.plan.load.places import AT, Reject, SourceName, split_place
from omnigraph.plan.load.reasons import Reason
from omnigraph.spark.load.aside import FEW, Aside, write_aside
from omnigraph.spark.load.pieces import Piece, Spool
from omnigraph.spark.load.state import SparkState
from omnigraph.spark.tasks import collect, explained, run_tasks

Describe = Callable[[dict[str, Any]], Reason]
"""The reason and the property of a row that a join found. It travels to executors."""

_AT_ONCE = 10_000


class ToldRows(msgspec.Struct, frozen=True, kw_only=True):
    """By place if they are few, in files if they are many."""

    few: dict[int, Reject] = {}
    files: tuple[Aside, ...] = ()


@dataclass(frozen=True)
class TellJob:
    """`found` are the rows that a join found, by `at`: the name of a file if they are many."""

    spool: Spool
    pieces: Sequence[Piece]
    names: tuple[SourceName, ...]
    type: str
    rule: str
    describe: Describe
    found: pa.Table | str


def refuse(state: SparkState, kind: GraphType, rule: str, frame: Any, describe: Describe) -> int:
    """Refuses the rows of a DataFrame, by `at`; gives how many there are."""
    found, count = _take(state, frame)
    if not count:
        return 0
    told = found if state.every else found.slice(0, max(TOLD - len(state.rejects), 0))
    state.more += count - told.num_rows
    if told.num_rows:
        _tell(state, kind, rule, told, describe)
    state.drop(kind, found["at"].to_numpy())
    return count


def _take(state: SparkState, frame: Any) -> tuple[pa.Table, int]:
    if state.every:
        found = collect(frame).sort_by("at")
        return found, found.num_rows
    found = collect(frame.limit(TOLD))
    if found.num_rows < TOLD:
        return found.sort_by("at"), found.num_rows
    with explained():
        return collect(frame.orderBy("at").limit(TOLD)), int(frame.count())


def _tell(
    state: SparkState, kind: GraphType, rule: str, told: pa.Table, describe: Describe
) -> None:
    """Rows are told as they came, so the pieces that were read are looked at, not merged ones."""
    few = told.num_rows <= FEW
    held = state.types[kind.table_key].given
    job = TellJob(
        spool=state.spool,
        pieces=held,
        names=state.names,
        type=kind.name,
        rule=rule,
        describe=describe,
        found=told if few else state.spool.write(f"found-{uuid4().hex}.arrow", told),
    )
    answers = run_tasks(state.spark, partial(tell_piece, job), range(len(held)), ToldRows)
    by_place = {place: one for _, answer in answers for place, one in answer.few.items()}
    state.rejects += [by_place[place] for place in sorted(by_place)]
    state.aside += [one for _, answer in answers for one in answer.files]


def tell_piece(job: TellJob, number: int) -> Iterator[ToldRows]:
    few = not isinstance(job.found, str)
    found = job.spool.table(job.found) if isinstance(job.found, str) else job.found
    places = found["at"].combine_chunks()
    rows = job.spool.read(job.pieces[number])
    rows = rows.filter(pc.is_in(rows[AT], value_set=places))
    by_place: dict[int, Reject] = {}
    files: list[Aside] = []
    for start in range(0, rows.num_rows, _AT_ONCE):
        part = rows.slice(start, _AT_ONCE)
        why = found.take(pc.index_in(part[AT], value_set=places))
        rejects = _rejects(job, part, why)
        if few:
            by_place |= rejects
        else:
            files.append(write_aside(job.spool, list(rejects.values())))
    if rows.num_rows:
        yield ToldRows(few=by_place, files=tuple(files))


def _rejects(job: TellJob, rows: pa.Table, why: pa.Table) -> dict[int, Reject]:
    texts = shown_rows(rows, rows[AT].to_numpy())
    told: dict[int, Reject] = {}
    for row in why.to_pylist():
        source, line = split_place(row["at"])
        entity, text = texts[row["at"]]
        reason, name = job.describe(row)
        told[row["at"]] = Reject(
            source=job.names[source].name,
            line=line,
            type=job.type,
            rule=job.rule,
            reason=reason,
            row=text,
            id=entity,
            property=name or None,
        )
    return told
