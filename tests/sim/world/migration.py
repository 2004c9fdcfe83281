"""Owns what a schema text makes of a state: what is new, gone, or has another name."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from tests.sim.world.model import (
    Declared,
    Property,
    Refused,
    Row,
    Rows,
    State,
    Text,
    Type,
    Unsure,
    broken_rules,
)
from tests.sim.world.named import misfits

_UIDS = itertools.count(1)


def begin(types: Text) -> State:
    return migrate(State(), types)


def migrate(state: State, types: Text) -> State:
    """The state under another schema text."""
    held = {one.name: one for one in state.types}
    nodes = {one.name for one in types if one.ends is None}
    for one in types:
        if one.ends is not None and not set(one.ends) <= nodes:
            raise Refused("an end is not there", "invalid_schema")
    made: dict[str, Type] = {}
    rows: dict[int, Rows] = {}
    for one in types:
        old = _renamed(held, one.name, one.rename_from)
        properties = _properties(
            old, one.properties, 0 if old is None else len(state.rows[old.uid])
        )
        uid = next(_UIDS) if old is None else old.uid
        ends = None if one.ends is None else (made[one.ends[0]].uid, made[one.ends[1]].uid)
        if old is not None and ends != old.ends:
            raise Refused("the ends of an edge type stay", "unsupported_change")
        made[one.name] = Type(uid, one, properties, ends)
        rows[uid] = _reshape(old, properties, {} if old is None else state.rows[old.uid])
    result = State(tuple(made.values()), rows, dict(state.queries))
    wrong = misfits(result.types, result.queries)
    codes = ("broken_queries",) if wrong else ()
    if broken := broken_rules(result):
        raise Refused("; ".join(broken), "invalid_data", "unsupported_change", *codes)
    if wrong:
        raise Refused(f"{wrong} would not run", "unsupported_change", *codes)
    return result


def _renamed(held: Mapping[str, Any], name: str, rename_from: str | None) -> Any:
    if rename_from is None:
        return held.get(name)
    if rename_from not in held:
        # A text that says again what was renamed before is not decided here.
        raise (
            Refused("nothing to rename", "unsupported_change") if name not in held else Unsure(name)
        )
    if name in held:
        raise Refused("the name is taken", "unsupported_change")
    return held[rename_from]


def _properties(
    old: Type | None, declared: tuple[Declared, ...], rows: int
) -> tuple[Property, ...]:
    held = {} if old is None else {one.name: one for one in old.properties}
    made = []
    for one in declared:
        before = _renamed(held, one.name, one.rename_from)
        if before is None:
            if one.required and rows:
                raise Refused(
                    "a required property for entities that are there", "unsupported_change"
                )
            made.append(Property(next(_UIDS), one, one.default))
        elif before.declared.kind != one.kind:
            raise Refused("values do not change their kind", "unsupported_change")
        elif (before.declared.default is None) != (one.default is None):
            raise Unsure("a property that becomes required, or nullable")
        else:
            made.append(Property(before.uid, one, before.filled))
    return tuple(made)


def _reshape(old: Type | None, properties: tuple[Property, ...], rows: Rows) -> Rows:
    if old is None:
        return {}
    return {key: reshape_row(properties, row) for key, row in rows.items()}


def reshape_row(properties: tuple[Property, ...], row: Row) -> Row:
    ends = {end: row[end] for end in ("src", "dst") if end in row}
    return ends | {one.uid: row.get(one.uid, one.filled) for one in properties}
