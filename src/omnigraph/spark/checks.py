"""Owns the rules between the rows of a load and the graph, as joins on Spark: the same rules, in
the same order and with the same words as in a load of one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.load.state import TOLD, Mode
from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import InvalidData
from omnigraph.model.catalog import EdgeType, GraphType, NodeType
from omnigraph.model.violation import Violation, show_value
from omnigraph.plan.load.places import Reject, SourceName, place_text, split_place
from omnigraph.spark.frames import Wanted, piece_frame, table_frame
from omnigraph.spark.journal import Journal
from omnigraph.spark.pieces import Piece, Spool
from omnigraph.spark.pinned import PinnedTable, pin_table
from omnigraph.spark.stage import (
    Completed,
    ShownRows,
    StageJob,
    complete_new,
    complete_pieces,
    show_rows,
)
from omnigraph.spark.tasks import ANSWERS, collect, collect_answers, explained, run_tasks

_BROADCAST_ROWS = 200_000
_NOTHING = np.empty(0, dtype=np.int64)
Describe = Callable[[dict[str, Any]], tuple[str, str]]


@dataclass(frozen=True)
class TypePieces:
    """Everything that was read of one type; `whole` once a merge has completed it, without the
    `dropped` rows that were refused before."""

    kind: GraphType
    given: tuple[Piece, ...] = ()
    whole: tuple[Piece, ...] | None = None
    dropped: int = 0

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return self.given if self.whole is None else self.whole

    @property
    def rows(self) -> int:
        return sum(piece.rows for piece in self.pieces)

    @property
    def generated(self) -> bool:
        return all(piece.generated for piece in self.given)


@dataclass
class SparkState:
    """What a load knows while it checks. `refused` are places by type, `checks` the tables on
    which a decision rests."""

    spark: Any
    session: Session
    snapshot: Snapshot
    mode: Mode
    types: dict[str, TypePieces]
    spool: Spool
    names: tuple[SourceName, ...]
    every: bool
    journal: Journal | None = None
    round: str = "0"
    checks: set[str] = field(default_factory=set)
    rejects: list[Reject] = field(default_factory=list)
    more: int = 0
    refused: dict[str, np.ndarray] = field(default_factory=dict)

    def replaced(self, kind: GraphType) -> bool:
        return self.mode == "overwrite" and kind.table_key in self.types

    def pinned(self, kind: GraphType) -> PinnedTable:
        return pin_table(self.session.root, self.snapshot, kind)

    def job(self, kind: GraphType, pieces: Sequence[Piece] | None = None) -> StageJob:
        held = self.types[kind.table_key].pieces if pieces is None else pieces
        refused = self.refused.get(kind.table_key, _NOTHING)
        return StageJob(
            self.pinned(kind), self.spool, tuple(held), self.names, refused, self.journal
        )

    def left(self, kind: GraphType) -> int:
        """How many rows of a type are still in."""
        held = self.types.get(kind.table_key)
        if held is None:
            return 0
        return held.rows + held.dropped - len(self.refused.get(kind.table_key, _NOTHING))

    # Frames

    def arriving(self, kind: GraphType, wanted: Wanted) -> Any:
        held = self.types[kind.table_key]
        wanted = replace(wanted, origin=held.whole is not None)
        refused = self.refused.get(kind.table_key, _NOTHING)
        return piece_frame(self.spark, self.spool, held.pieces, wanted, refused)

    def stored(self, kind: GraphType, wanted: Wanted) -> Any | None:
        """Rows of the table that a load leaves there, None if there are none."""
        self.checks.add(kind.table_key)
        view = self.snapshot.view(kind)
        if self.replaced(kind) or not view.table.rows:
            return None
        sizes = [(mark.id, mark.rows) for mark in view.table.marks.values()]
        return table_frame(self.spark, self.pinned(kind), sizes, wanted)

    def small(self, frame: Any, rows: int) -> Any:
        """Spark knows nothing of the size of what Python reads, so it is told."""
        from pyspark.sql import functions as sql

        return sql.broadcast(frame) if rows <= _BROADCAST_ROWS else frame

    # Refusing

    def refuse(self, kind: GraphType, rule: str, frame: Any, describe: Describe) -> int:
        """Rows, by `at`, with what is told of them; they take no further part."""
        found, count = self._take(frame)
        if not count:
            return 0
        rows = found.to_pylist()
        places = np.array([row["at"] for row in rows], dtype=np.int64)
        told = rows if self.every else rows[: max(TOLD - len(self.rejects), 0)]
        self.more += count - len(told)
        texts = self._texts(kind, places[: len(told)])
        for row in told:
            source, line = split_place(row["at"])
            entity, text = texts[row["at"]]
            reason, name = describe(row)
            self.rejects.append(
                Reject(
                    source=self.names[source].name,
                    line=line,
                    type=kind.name,
                    rule=rule,
                    reason=reason,
                    row=text,
                    id=entity,
                    property=name or None,
                )
            )
        self.drop(kind, places)
        return count

    def drop(self, kind: GraphType, places: np.ndarray) -> None:
        before = self.refused.get(kind.table_key, _NOTHING)
        self.refused[kind.table_key] = np.union1d(before, places)

    def _take(self, frame: Any) -> tuple[pa.Table, int]:
        if self.every:
            found = collect(frame).sort_by("at")
            return found, found.num_rows
        found = collect(frame.limit(TOLD))
        if found.num_rows < TOLD:
            return found.sort_by("at"), found.num_rows
        with explained():
            return collect(frame.orderBy("at").limit(TOLD)), int(frame.count())

    def _texts(self, kind: GraphType, places: np.ndarray) -> dict[int, tuple[str, str]]:
        """Rows as they came. Only pieces that hold such a place are read."""
        held = self.types[kind.table_key].given
        job = StageJob(self.pinned(kind), self.spool, held, self.names)
        answers = run_tasks(
            self.spark, partial(show_rows, job, places), range(len(held)), ShownRows
        )
        return {place: shown for _, answer in answers for place, shown in answer.rows.items()}


def check_duplicates(state: SparkState) -> None:
    """An id comes once in an input, whatever the mode."""
    from pyspark.sql import functions as sql

    for held in state.types.values():
        kind = held.kind
        if held.generated or state.left(kind) < 2:
            continue
        ids = state.arriving(kind, Wanted(("id",))).select("id", "at")
        many = ids.groupBy("id").agg(sql.min("at").alias("first"), sql.count("*").alias("n"))
        many = many.where("n > 1").drop("n")
        with explained():
            if many.isEmpty():
                continue
        made = f", which is made from {', '.join(f'`{n}`' for n in kind.key)}" if kind.key else ""
        name = kind.name

        def describe(row: dict[str, Any], name: str = name, made: str = made) -> tuple[str, str]:
            return (
                f"the id {show_value(row['id'])} of {name}{made}, stands in "
                f"{place_text(state.names, row['first'])} already; give each entity once."
            ), ""

        state.refuse(
            kind, "key" if kind.key else "id", ids.join(many, "id").where("at > first"), describe
        )


def check_new(state: SparkState) -> None:
    """What is appended must not be there."""
    for held in state.types.values():
        kind = held.kind
        if held.generated or not state.left(kind):
            continue
        stored = state.stored(kind, Wanted(("id",)))
        if stored is None:
            continue
        ids = state.small(state.arriving(kind, Wanted(("id",))), state.left(kind))
        stored = state.small(stored, state.snapshot.view(kind).table.rows)
        taken = ids.join(stored, "id").select("at", "id")

        def describe(row: dict[str, Any], name: str = kind.name) -> tuple[str, str]:
            return (
                f"{name} {show_value(row['id'])} exists already; mode='merge' changes it, "
                "append does not."
            ), ""

        state.refuse(kind, "key" if kind.key else "id", taken, describe)


def complete_types(state: SparkState) -> None:
    """Whole rows of a merge, each with the row that it replaces."""
    for key, held in list(state.types.items()):
        kind, stored = held.kind, None
        if not held.generated:
            stored = state.stored(kind, Wanted(("id",)))
        job = state.job(kind, held.given)
        if stored is None:
            answers = run_tasks(
                state.spark, partial(complete_new, job), range(len(held.given)), Completed
            )
        else:
            ids = state.arriving(kind, Wanted(("id",)))
            stored = state.small(stored, state.snapshot.view(kind).table.rows)
            located = ids.join(stored, "id", "left").selectExpr("part", "at", "address as origin")
            grouped = located.groupBy("part").applyInArrow(complete_pieces(job), ANSWERS)
            answers = collect_answers(grouped, Completed)
        for _, answer in answers:
            state.rejects += answer.rejects
            state.drop(kind, np.array(answer.dropped, dtype=np.int64))
        whole = tuple(answer.piece for _, answer in answers if answer.piece is not None)
        dropped = len(state.refused.get(key, _NOTHING))
        state.types[key] = replace(held, whole=whole, dropped=dropped)


def check_rules(state: SparkState) -> None:
    """Nodes first: an edge may hang on a node that is refused."""
    kinds = [held.kind for held in state.types.values()]
    for kind in kinds:
        for columns in kind.uniques:
            # Refusing a row gives back the value that the entity had, which may clash again.
            while _check_unique(state, kind, columns):
                pass
    if state.rejects and not state.every:
        return  # edges of a node that is refused would only hide the reason
    for kind in kinds:
        if isinstance(kind, EdgeType):
            _check_ends(state, kind)
            _check_card(state, kind)
    for kind in kinds:
        if isinstance(kind, NodeType) and state.replaced(kind):
            _check_orphans(state, kind)


def _check_unique(state: SparkState, kind: GraphType, columns: tuple[str, ...]) -> bool:
    from pyspark.sql import functions as sql

    if not state.left(kind):
        return False
    rows = state.arriving(kind, Wanted(("id",), columns)).where("key is not null")
    many = rows.groupBy("key").agg(sql.min("at").alias("first"), sql.count("*").alias("n"))
    many = many.where("n > 1").select("key", "first")
    clashing = rows.join(many, "key").where("at > first").select("at", "id", "key")
    stored = state.stored(kind, Wanted((), columns))
    if stored is not None:
        others = stored.where("key is not null")
        if "origin" in rows.columns:
            own = rows_origins(state, kind)
            others = others.join(own, others.address == own.origin, "left_anti")
        others = state.small(others.select("key"), state.snapshot.view(kind).table.rows)
        held = rows.join(others, "key", "left_semi").select("at", "id", "key")
        clashing = clashing.union(held).distinct()
    shown = ", ".join(columns)

    def describe(row: dict[str, Any]) -> tuple[str, str]:
        return (
            f"{kind.name} {show_value(row['id'])} has {shown} = {show_value(row['key'])}, which "
            f"another {kind.name} has already; @unique({shown}) allows it once."
        ), shown

    return state.refuse(kind, "unique", clashing, describe) > 0 and state.every


def rows_origins(state: SparkState, kind: GraphType) -> Any:
    """The addresses of rows that rows of a merge replace."""
    frame = state.arriving(kind, Wanted())
    return state.small(frame.where("origin is not null").select("origin"), state.left(kind))


# Ends of edges


def _check_ends(state: SparkState, kind: EdgeType) -> None:
    for end, node_name in (("src", kind.source), ("dst", kind.target)):
        if not state.left(kind):
            return
        node = state.snapshot.catalog.node_names[node_name]
        rows = state.arriving(kind, Wanted((end,))).select("at", end)
        nodes, count = _node_ids(state, node)
        missing = rows
        if nodes is not None:
            nodes = state.small(nodes, count)
            missing = rows.join(nodes, rows[end] == nodes["id"], "left_anti")
        name = "from" if end == "src" else "to"

        def describe(
            row: dict[str, Any], end: str = end, name: str = name, node_name: str = node_name
        ) -> tuple[str, str]:
            return (
                f"{kind.name} has `{name}` {show_value(row[end])}, but there is no {node_name} "
                "with that id."
            ), name

        state.refuse(kind, "endpoint", missing, describe)


def _node_ids(state: SparkState, node: NodeType) -> tuple[Any | None, int]:
    """The ids of all nodes that there will be, and about how many."""
    stored = state.stored(node, Wanted(("id",)))
    count = 0 if stored is None else state.snapshot.view(node).table.rows
    found = None if stored is None else stored.select("id")
    if state.left(node):
        count += state.left(node)
        arriving = state.arriving(node, Wanted(("id",))).select("id")
        found = arriving if found is None else found.union(arriving)
    return found, count


def _check_orphans(state: SparkState, node: NodeType) -> None:
    """Replacing all nodes does not take edges along, so it is refused; no single row is to
    blame, so nothing can be quarantined."""
    for edge in state.snapshot.catalog.edges:
        for end, node_name in (("src", edge.source), ("dst", edge.target)):
            if node_name != node.name or state.replaced(edge):
                continue
            lost = state.stored(edge, Wanted(("id", end)))
            if lost is None:
                continue
            nodes, count = _node_ids(state, node)
            if nodes is not None:
                nodes = state.small(nodes.withColumnRenamed("id", "node"), count)
                lost = lost.join(nodes, lost[end] == nodes["node"], "left_anti")
            examples = collect(lost.limit(TOLD))
            if not examples.num_rows:
                continue
            with explained():
                total = int(lost.count())
            violations = [
                Violation(
                    type=node.name,
                    rule="orphan",
                    id=row[end],
                    message=f"{node.name} {show_value(row[end])} would be gone, but {edge.name} "
                    f"{show_value(row['id'])} has it as its {end}.",
                )
                for row in examples.to_pylist()
            ]
            rest = f" (and {total - 1} more)" if total > 1 else ""
            raise InvalidData(
                violations[0].message + rest, violations=violations, more=total - len(violations)
            )


# Cardinality


def _check_card(state: SparkState, kind: EdgeType) -> None:
    card = kind.card
    if card.high is not None:
        _refuse_beyond(state, kind, card.high)
    if card.low:
        _refuse_below(state, kind, card.low)


def _totals(state: SparkState, kind: EdgeType) -> tuple[Any, Any]:
    """The rows that arrive with `held`, how many edges of their source stay in the table, and
    for each source `n`, how many it would have."""
    from pyspark.sql import functions as sql

    rows = state.arriving(kind, Wanted(("src",)))
    stored = state.stored(kind, Wanted(("src",)))
    if stored is None:
        rows = rows.withColumn("held", sql.lit(0).cast("long"))
    else:
        if "origin" in rows.columns:
            own = rows_origins(state, kind)
            stored = stored.join(own, stored.address == own.origin, "left_anti")
        counts = stored.groupBy("src").agg(sql.count("*").alias("held"))
        rows = rows.join(counts, "src", "left").fillna(0, ["held"])
    totals = rows.groupBy("src").agg((sql.count("*") + sql.max("held")).alias("n"))
    return rows, totals


def _card_words(kind: EdgeType, limit: str) -> Describe:
    def describe(row: dict[str, Any]) -> tuple[str, str]:
        return (
            f"{kind.source} {show_value(row['src'])} would have {row['n']} {kind.name} edges; "
            f"@card allows {limit}."
        ), "from"

    return describe


def _refuse_beyond(state: SparkState, kind: EdgeType, high: int) -> None:
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    if not state.left(kind):
        return
    rows, totals = _totals(state, kind)
    order = [sql.col("origin").isNull(), sql.col("at")] if "origin" in rows.columns else ["at"]
    place = sql.row_number().over(Window.partitionBy("src").orderBy(*order))
    beyond = rows.join(totals.where(f"n > {high}"), "src").withColumn("place", place)
    beyond = beyond.where(f"place + held > {high}").select("at", "src", "n")
    state.refuse(kind, "card", beyond, _card_words(kind, f"at most {high}"))


def _refuse_below(state: SparkState, kind: EdgeType, low: int) -> None:
    if state.left(kind):
        rows, totals = _totals(state, kind)
        below = rows.join(totals.where(f"n < {low}"), "src").select("at", "src", "n")
        state.refuse(kind, "card", below, _card_words(kind, f"at least {low}"))
    if state.replaced(kind):
        _check_abandoned(state, kind, low)


def _check_abandoned(state: SparkState, kind: EdgeType, low: int) -> None:
    """Sources that had edges before everything was replaced and are still there."""
    view = state.snapshot.view(kind)
    state.checks.add(kind.table_key)
    node = state.snapshot.catalog.node_names[kind.source]
    nodes, count = _node_ids(state, node)
    if not view.table.rows or nodes is None:
        return
    sizes = [(mark.id, mark.rows) for mark in view.table.marks.values()]
    lost = table_frame(state.spark, state.pinned(kind), sizes, Wanted(("src",)))
    lost = lost.select("src").distinct()
    if state.left(kind):
        lost = lost.join(state.arriving(kind, Wanted(("src",))).select("src"), "src", "left_anti")
    nodes = state.small(nodes.withColumnRenamed("id", "src"), count)
    alive = collect(lost.join(nodes, "src", "left_semi"))
    if alive.num_rows:
        first = alive["src"][0].as_py()
        message = (
            f"{kind.source} {show_value(first)} would have 0 {kind.name} edges; @card allows at "
            f"least {low}."
        )
        found = Violation(type=kind.name, rule="card", id=first, property="src", message=message)
        raise InvalidData(message, violations=[found], more=alive.num_rows - 1)


def all_checks(state: SparkState) -> Iterator[None]:
    """In order; after each the caller may stop."""
    check_duplicates(state)
    yield
    if state.mode == "append":
        check_new(state)
    elif state.mode == "merge":
        complete_types(state)
    yield
    check_rules(state)
    yield
