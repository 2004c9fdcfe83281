"""Owns what a merge of two states is, and what taking back a commit is; over plain dicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.sim.world import named
from tests.sim.world.migration import reshape_row
from tests.sim.world.model import (
    Refused,
    Row,
    State,
    Type,
    Unsure,
    broken_rules,
    check,
)

Pick = Callable[[str, str | None], str | None]
"""Who wins where both changed a property of a type (None: a whole entity): ours, theirs, nobody."""


class Contested:
    """What several bases do not agree on: equal to nothing, itself included."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False


def read_strategy(strategy: str | Mapping[str, str] | None) -> Pick:
    if strategy is None or isinstance(strategy, str):
        return lambda kind, name: strategy
    given = dict(strategy)

    def pick(kind: str, name: str | None) -> str | None:
        return given.get(f"{kind}.{name}", given.get(kind))

    return pick


@dataclass
class Merged:
    state: State
    conflicts: list[str] = field(default_factory=list)


def merge(
    base: State,
    ours: State,
    theirs: State,
    strategy: str | Mapping[str, str] | None,
    resolve: Mapping[tuple[str, str], Mapping[str, Any] | None] | None = None,
) -> State:
    """What the merged graph holds; `Refused` with all conflicts."""
    pick = read_strategy(strategy)
    for (name, _), row in (resolve or {}).items():
        if (
            name != named.QUERY
            and row is not None
            and set(row) - {"from", "to"}
            != {one.name for one in _schema(base, ours, theirs).type(name).properties}
        ):
            raise Unsure("a row that leaves something out")
    merged = _merge_rows(base, ours, theirs, pick, dict(resolve or {}))
    merged.conflicts += broken_rules(merged.state)
    if merged.conflicts:
        raise Refused("; ".join(merged.conflicts[:5]), "merge_conflict")
    return merged.state


def merge_bases(states: Sequence[tuple[State, State]]) -> State:
    """Several bases, each with the base that it has with those before it: merged with each other,
    contested where that fails."""
    state = states[0][0]
    for other, below in states[1:]:
        if not (state.same_schema(other) and state.same_schema(below)):
            raise Unsure("bases of several schemas")
        merged = _settle(below, state, other)
        state = merged
    return state


def _settle(below: State, one: State, other: State) -> State:
    result = State(one.types, {kind.uid: {} for kind in one.types})
    result.queries = _settle_queries(below.queries, one.queries, other.queries)
    for kind in one.types:
        sides = [side.rows[kind.uid] for side in (below, one, other)]
        for key in {*sides[0], *sides[1], *sides[2]}:
            was, mine, yours = (side.get(key) for side in sides)
            merged: Any
            if mine == yours or was == yours:
                merged = mine
            elif was == mine:
                merged = yours
            elif mine is None or yours is None or isinstance(mine, Contested):
                merged = Contested()
            else:
                merged = {}
                for name in mine:
                    before = None if was is None else was[name]
                    if mine[name] == yours[name] or (was is not None and before == yours[name]):
                        merged[name] = mine[name]
                    elif was is not None and before == mine[name]:
                        merged[name] = yours[name]
                    else:
                        merged[name] = Contested()
            if merged is not None:
                result.rows[kind.uid][key] = merged
    return result


def _settle_queries(below: Any, one: Any, other: Any) -> dict[str, Any]:
    settled: dict[str, Any] = {}
    for name in {*below, *one, *other}:
        was, mine, yours = (side.get(name) for side in (below, one, other))
        if mine == yours or was == yours:
            text: Any = mine
        elif was == mine:
            text = yours
        else:
            text = Contested()
        if text is not None:
            settled[name] = text
    return settled


def _schema(base: State, ours: State, theirs: State) -> State:
    """The side whose schema the result has, if only one side changed it."""
    if theirs.same_schema(base) or theirs.same_schema(ours):
        return ours
    if ours.same_schema(base):
        return theirs
    raise Unsure("both changed the schema")


def _merge_rows(
    base: State, ours: State, theirs: State, pick: Pick, resolve: dict[tuple[str, str], Any]
) -> Merged:
    schema = _schema(base, ours, theirs)
    other = theirs if schema is ours else ours
    if not ours.same_schema(theirs):
        _require_untouched(base, schema, other)
    merged = Merged(State(schema.types, {kind.uid: {} for kind in schema.types}))
    sides_of = (base.queries, ours.queries, theirs.queries)
    merged.state.queries = named.merge(*sides_of, pick, resolve, merged.conflicts)
    wrong = named.misfits(schema.types, merged.state.queries)
    merged.conflicts += [f"Query {name} would not run" for name in wrong]
    for kind in schema.types:
        sides = [
            {key: _shaped(kind, row) for key, row in side.rows.get(kind.uid, {}).items()}
            for side in (base, ours, theirs)
        ]
        keys: dict[str, Any] = {**sides[0], **sides[1], **sides[2]}
        for name, key in resolve:
            if name == kind.name:
                keys[key] = None
        for key in keys:
            if (kind.name, key) in resolve:
                row = _given(kind, key, resolve[kind.name, key])
            else:
                row = _merge_row(kind, key, [side.get(key) for side in sides], pick, merged)
            if row is not None:
                merged.state.rows[kind.uid][key] = row
    return merged


def _shaped(kind: Type, row: Any) -> Any:
    return row if isinstance(row, Contested) else reshape_row(kind.properties, row)


def _given(kind: Type, key: str, row: Mapping[str, Any] | None) -> Row | None:
    if row is None:
        return None
    made: Row = {one.uid: row[one.name] for one in kind.properties}
    if kind.ends is not None:
        made |= {"src": row["from"], "dst": row["to"]}
    return made


def _require_untouched(base: State, changed: State, other: State) -> None:
    """Work on what the other side's schema lost is a conflict in some cases and not in others."""
    kept = {kind.uid: {one.uid for one in kind.properties} for kind in changed.types}
    for kind in base.types:
        old, new = base.rows[kind.uid], other.rows.get(kind.uid, {})
        if kind.uid not in kept and old != new:
            raise Unsure("rows of a type that is gone")
        for one in kind.properties:
            if one.uid in kept.get(kind.uid, {one.uid}):
                continue
            for key in new:
                if new[key][one.uid] != old.get(key, {}).get(one.uid):
                    raise Unsure("values of a property that is gone")


def _merge_row(
    kind: Type, key: str, sides: Sequence[Any], pick: Pick, merged: Merged
) -> Row | None:
    was, mine, yours = sides
    if mine == yours or was == yours:
        return mine  # type: ignore[no-any-return]
    if was == mine:
        return yours  # type: ignore[no-any-return]
    if mine is None or yours is None:
        who = pick(kind.name, None)
        if who is None:
            merged.conflicts.append(f"DeleteVsUpdate {kind.name} {key}")
        return yours if who == "theirs" else mine  # type: ignore[no-any-return]
    result: Row = {}
    names = {one.uid: one.name for one in kind.properties}
    for uid in mine:
        before = None if was is None else (was if isinstance(was, Contested) else was[uid])
        if mine[uid] == yours[uid] or (was is not None and before == yours[uid]):
            result[uid] = mine[uid]
        elif was is not None and before == mine[uid]:
            result[uid] = yours[uid]
        else:
            who = pick(kind.name, names.get(uid, uid))
            if who is None:
                merged.conflicts.append(f"Divergent {kind.name} {key} {names.get(uid, uid)}")
            result[uid] = yours[uid] if who == "theirs" else mine[uid]
    return result


class _Undo:
    """Takes back, of what is there now, what led from one state to another."""

    def __init__(self, now: State) -> None:
        self.state = now.copy()
        self.conflicts: list[str] = []
        self.done_before = False

    def take_back(self, kind: Type, key: str, was: Row | None, made: Row | None) -> None:
        held = self.state.rows[kind.uid]
        here = held.get(key)
        if here == was:
            self.done_before = True
        elif was is not None and made is not None and here is not None:
            for name in (one for one in was if was[one] != made[one]):
                self._take_back_value(f"{kind.name} {key} {name}", here, name, was, made)
        elif here != made:
            self.conflicts.append(f"{kind.name} {key}")
        elif was is None:
            del held[key]
        else:
            held[key] = dict(was)

    def _take_back_value(self, what: str, here: Row, name: Any, was: Row, made: Row) -> None:
        if here[name] == was[name]:
            self.done_before = True
        elif here[name] != made[name]:
            self.conflicts.append(what)
        else:
            here[name] = was[name]


def revert(before: State, after: State, now: State) -> State:
    """Takes back what led from before to after, of what is there now."""
    if not (before.same_schema(after) and before.same_schema(now)):
        raise Unsure("the schema changed")
    undo = _Undo(now)
    for kind in now.types:
        old, new = before.rows[kind.uid], after.rows[kind.uid]
        for key in {**old, **new}:
            if old.get(key) != new.get(key):
                undo.take_back(kind, key, old.get(key), new.get(key))
    for name in {*before.queries, *after.queries}:
        was, made = before.queries.get(name), after.queries.get(name)
        if was == made:
            continue
        here = undo.state.queries.get(name)
        if here == was:
            undo.done_before = True
        elif here != made:
            undo.conflicts.append(f"query {name}")
        elif was is None:
            del undo.state.queries[name]
        else:
            undo.state.queries[name] = was
    if undo.done_before:
        raise Unsure("some of it was taken back before")
    if undo.conflicts:
        raise Refused("; ".join(undo.conflicts), "revert_conflict")
    check(undo.state)
    return undo.state
