"""Owns the rules between the rows of a load and the graph: ids, unique values, endpoints, orphans
and cardinality, each as a join over all rows at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.load.joins import as_keys
from omnigraph.engine.load.rules import Rules
from omnigraph.engine.load.state import FEW, ORIGIN, TOLD, LoadState
from omnigraph.model.catalog import EdgeType, GraphType, NodeType
from omnigraph.plan.load.places import AT, place_text
from omnigraph.plan.load.reasons import (
    abandoned,
    exists_already,
    has_no_end,
    has_too_few,
    has_too_many,
    id_rule,
    is_not_unique,
    orphans,
    stands_twice,
)
from omnigraph.plan.validate import key_texts
from omnigraph.store.tables import ADDRESS


def check_duplicates(state: LoadState) -> None:
    """An id comes once in an input, whatever the mode."""
    for rows in list(state.rows.values()):
        if rows.generated or rows.table.num_rows < 2:
            continue
        ids = rows.table.select(["id", AT])
        again = state.joins.ask(
            f"SELECT id, {AT}, first FROM rows JOIN (SELECT id AS same, min({AT}) AS first "
            f"FROM rows GROUP BY id HAVING count(*) > 1) ON id = same WHERE {AT} > first "
            f"ORDER BY {AT}",
            rows=ids,
        )
        kind = rows.kind
        found = [
            (at, *stands_twice(kind, entity, place_text(state.names, first)))
            for entity, at, first in _tuples(again)
        ]
        state.refuse(kind, id_rule(kind), found)


def check_new(state: LoadState) -> None:
    """What is appended must not be there."""
    for rows in list(state.rows.values()):
        if rows.generated or not rows.table.num_rows:
            continue
        kind = rows.kind
        known = state.locate(kind, "id", _values(rows.table["id"]))
        if known.num_rows:
            taken = rows.table.filter(pc.is_in(rows.table["id"], value_set=known["v"]))
            pairs = _tuples(taken.select(["id", AT]))
            found = [(at, *exists_already(kind, entity)) for entity, at in pairs]
            state.refuse(kind, id_rule(kind), found)


# Unique values


def _check_unique(state: LoadState, kind: GraphType, columns: tuple[str, ...]) -> bool:
    table = state.arriving(kind)
    if table is None:
        return False
    keys, given = as_keys(kind, columns)
    names = ", ".join(f"k{i}" for i in range(len(columns)))
    wanted = [*dict.fromkeys([*columns, "id", AT])]
    again = state.joins.ask(
        f"WITH keyed AS (SELECT {keys}, {AT} FROM rows WHERE {given}), "
        f"many AS (SELECT {names}, min({AT}) AS first FROM keyed GROUP BY {names} "
        f"HAVING count(*) > 1) SELECT {AT} FROM keyed JOIN many USING ({names}) "
        f"WHERE {AT} > first",
        rows=table.select(wanted),
    )
    clashing = again[AT].combine_chunks()
    if not state.replaced(kind):
        clashing = pa.concat_arrays(
            [clashing, _held_by_others(state, kind, columns, table).cast(pa.int64())]
        )
    if not len(clashing):
        return False
    rows = table.filter(pc.is_in(table[AT], value_set=clashing)).sort_by(AT)
    told = zip(_tuples(rows.select(["id", AT])), key_texts(rows, columns), strict=True)
    found = [(at, *is_not_unique(kind, columns, entity, text)) for (entity, at), text in told]
    state.refuse(kind, "unique", found)
    return True


def _held_by_others(
    state: LoadState, kind: GraphType, columns: tuple[str, ...], table: pa.Table
) -> pa.Array:
    """Places of rows whose values a row of the table has that none of these rows replaces."""
    view = state.view(kind)
    if not view.table.rows:
        return pa.array([], pa.int64())
    origins = table[ORIGIN] if ORIGIN in table.column_names else None
    if table.num_rows <= FEW:
        texts = key_texts(table, columns)
        held = [position for position, text in enumerate(texts) if text is not None]
        found = view.find(columns, [t for t in texts if t is not None], state.ledger)
        others = pa.array(found.addresses)
        positions = pa.array([held[p] for p in found.base_positions.tolist()], pa.int64())
        if origins is not None:
            foreign = pc.invert(pc.is_in(others, value_set=origins.drop_null()))
            positions = positions.filter(foreign)
        return table[AT].take(positions).combine_chunks()
    keys, given = as_keys(kind, columns)
    names = ", ".join(f"k{i}" for i in range(len(columns)))
    own = origins.drop_null() if origins is not None else pa.chunked_array([], pa.uint64())
    answer = state.joins.ask(
        f"WITH keyed AS (SELECT {keys}, {AT} FROM rows WHERE {given}), "
        f"others AS (SELECT {keys} FROM base ANTI JOIN own ON base.{ADDRESS} = own.a "
        f"WHERE {given}) SELECT DISTINCT {AT} FROM keyed SEMI JOIN others USING ({names})",
        rows=table.select([*dict.fromkeys([*columns, AT])]),
        base=state.column_reader(view, columns),
        own=pa.table({"a": own}),
    )
    return answer[AT].combine_chunks()


# Ends of edges


def _check_ends(state: LoadState, kind: EdgeType) -> None:
    for end, node_name in (("src", kind.source), ("dst", kind.target)):
        table = state.arriving(kind)
        if table is None:
            return
        node = state.snapshot.catalog.node_names[node_name]
        missing = _missing(state, node, table, end)
        if not missing.num_rows:
            continue
        rows = table.filter(pc.is_in(table[end], value_set=missing["v"]))
        pairs = _tuples(rows.select([AT, end]))
        found = [(at, *has_no_end(kind, end, value)) for at, value in pairs]
        state.refuse(kind, "endpoint", found)


def _missing(state: LoadState, node: NodeType, table: pa.Table, end: str) -> pa.Table:
    """The distinct values of an end that are the id of no node."""
    nodes = state.arriving(node)
    if nodes is None:
        wanted = _values(table[end])
    else:
        wanted = state.joins.ask(
            f"SELECT DISTINCT {end} AS v FROM rows ANTI JOIN nodes ON {end} = nodes.id",
            rows=table.select([end]),
            nodes=nodes.select(["id"]),
        )
    if not wanted.num_rows:
        return wanted
    known = state.locate(node, "id", wanted)
    if not known.num_rows:
        return wanted
    return wanted.filter(pc.invert(pc.is_in(wanted["v"], value_set=known["v"])))


def _check_orphans(state: LoadState, node: NodeType) -> None:
    """Replacing all nodes does not take edges along, so it is refused; no single row is to
    blame, so nothing can be quarantined."""
    for edge in state.snapshot.catalog.edges:
        for end, node_name in (("src", edge.source), ("dst", edge.target)):
            if node_name != node.name or state.replaced(edge):
                continue
            lost = _lost_edges(state, node, edge, end)
            if lost.num_rows:
                first = [(entity, value) for entity, value in _tuples(lost.slice(0, TOLD))]
                raise orphans(node, edge, end, first, lost.num_rows)


def _lost_edges(state: LoadState, node: NodeType, edge: EdgeType, end: str) -> pa.Table:
    nodes = state.arriving(node)
    ids = pa.table({"id": pa.array([], pa.string())}) if nodes is None else nodes.select(["id"])
    arriving = state.arriving(edge)
    view = state.view(edge)
    base = state.column_reader(view, ["id", end])
    lost = state.joins.ask(
        f"SELECT base.id, base.{end} FROM base ANTI JOIN nodes ON base.{end} = nodes.id",
        base=base,
        nodes=ids,
    )
    assert arriving is None  # the mode is one for all types
    return lost


# Cardinality


def _check_card(state: LoadState, kind: EdgeType) -> None:
    card = kind.card
    if card.low == 0 and card.high is None:
        return
    if card.high is not None:
        _refuse_beyond(state, kind, card.high)
    if card.low:
        _refuse_below(state, kind, card.low)


def _counts(state: LoadState, kind: EdgeType) -> pa.Table:
    """`v` and `held`: how many edges each source of an arriving edge keeps in the table."""
    table = state.arriving(kind)
    empty = pa.table({"v": pa.array([], pa.string()), "held": pa.array([], pa.int64())})
    if table is None or state.replaced(kind):
        return empty
    known = state.locate(kind, "src", _values(table["src"]))
    if not known.num_rows:
        return empty
    own = pa.chunked_array([], pa.uint64())
    if ORIGIN in table.column_names:
        own = table[ORIGIN].drop_null()
    return state.joins.ask(
        f"SELECT v, count(*) AS held FROM known ANTI JOIN own ON known.{ADDRESS} = own.a "
        "GROUP BY v",
        known=known,
        own=pa.table({"a": own}),
    )


def _refuse_beyond(state: LoadState, kind: EdgeType, high: int) -> None:
    table = state.arriving(kind)
    if table is None:
        return
    new_first = f"({ORIGIN} IS NULL), " if ORIGIN in table.column_names else ""
    columns = ["src", AT, *([ORIGIN] if new_first else [])]
    beyond = state.joins.ask(
        f"WITH total AS (SELECT src, count(*) + coalesce(max(held), 0) AS n FROM rows "
        f"LEFT JOIN counts ON src = v GROUP BY src HAVING n > {high}) "
        f"SELECT {AT}, src, n, held FROM (SELECT {AT}, src, n, coalesce(held, 0) AS held, "
        f"row_number() OVER (PARTITION BY src ORDER BY {new_first}{AT}) AS place FROM rows "
        f"JOIN total USING (src) LEFT JOIN counts ON src = v) WHERE place + held > {high} "
        f"ORDER BY {AT}",
        rows=table.select(columns),
        counts=_counts(state, kind),
    )
    found = [(at, *has_too_many(kind, source, n)) for at, source, n, _ in _tuples(beyond)]
    state.refuse(kind, "card", found)


def _refuse_below(state: LoadState, kind: EdgeType, low: int) -> None:
    table = state.arriving(kind)
    if table is not None:
        below = state.joins.ask(
            f"WITH total AS (SELECT src, count(*) + coalesce(max(held), 0) AS n FROM rows "
            f"LEFT JOIN counts ON src = v GROUP BY src HAVING n < {low}) "
            f"SELECT {AT}, src, n FROM rows JOIN total USING (src) ORDER BY {AT}",
            rows=table.select(["src", AT]),
            counts=_counts(state, kind),
        )
        found = [(at, *has_too_few(kind, source, n)) for at, source, n in _tuples(below)]
        state.refuse(kind, "card", found)
    if state.replaced(kind):
        _check_abandoned(state, kind)


def _check_abandoned(state: LoadState, kind: EdgeType) -> None:
    """Sources that had edges before everything was replaced and are still there."""
    table = state.arriving(kind)
    rows = pa.table({"src": pa.array([], pa.string())}) if table is None else table.select(["src"])
    lost = state.joins.ask(
        "SELECT DISTINCT base.src AS v FROM base ANTI JOIN rows USING (src)",
        base=state.column_reader(state.view(kind), ["src"]),
        rows=rows,
    )
    node = state.snapshot.catalog.node_names[kind.source]
    if not lost.num_rows:
        return
    missing = _missing(state, node, lost.rename_columns(["src"]), "src")
    alive = lost.filter(pc.invert(pc.is_in(lost["v"], value_set=missing["v"])))
    if alive.num_rows:
        raise abandoned(kind, alive["v"][0].as_py(), alive.num_rows)


def _values(column: pa.ChunkedArray) -> pa.Table:
    return pa.table({"v": pc.unique(column)})


def _tuples(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


RULES = Rules(unique=_check_unique, ends=_check_ends, card=_check_card, orphans=_check_orphans)
