"""Owns the answers that a commit with an idempotency key records, so that a repeated call gets
the same answers. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from omnigraph.engine.write.statements import (
    AppendRows,
    DeleteRows,
    DeleteWhere,
    Statement,
)
from omnigraph.model.catalog import Catalog
from omnigraph.model.version import GraphVersion

Effect = Literal["inserted", "updated", "deleted"]
Effects = Counter[tuple[str, Effect]]
_EFFECTS: tuple[Effect, ...] = ("inserted", "updated", "deleted")


def pack_numbers(told: Sequence[tuple[Statement, int]]) -> tuple[int, ...]:
    """The numbers that the statements of a block returned, including undone ones, where the
    statement alone does not determine them."""
    return tuple(number for one, number in told if not isinstance(one, AppendRows))


def number_of(statement: Statement, before: Sequence[Statement], first: GraphVersion) -> int:
    """The number that a statement of a repeated block returned, given those before it. A statement
    that the first call did not have makes this a different call, which is found out when the block
    ends."""
    if isinstance(statement, AppendRows):
        return statement.rows
    if not first.keys.call:  # no numbers were kept for it
        return _from_statistics(statement, first)
    place = sum(not isinstance(one, AppendRows) for one in before)
    return first.keys.answers[place] if place < len(first.keys.answers) else 0


def _from_statistics(statement: Statement, first: GraphVersion) -> int:
    deletes = isinstance(statement, DeleteRows | DeleteWhere)
    of_type = [s for key, s in first.commit.statistics.items() if _names(key, statement)]
    return sum(one.deleted if deletes else one.updated for one in of_type)


def _names(key: str, statement: Statement) -> bool:
    return statement.type in (key, key.split(":", 1)[1])


def pack_effects(effects: Effects, catalog: Catalog) -> tuple[int, ...]:
    """The effects of a mutation: for each affected type, its place in the schema and three
    numbers."""
    packed: list[int] = []
    for place, kind in enumerate(catalog.types):
        numbers = [effects[kind.table_key, effect] for effect in _EFFECTS]
        if any(numbers):
            packed += [place, *numbers]
    return tuple(packed)


def effects_of(first: GraphVersion, catalog: Catalog) -> Effects:
    """The effects of the mutation that made this version under this schema."""
    effects: Effects = Counter()
    if not first.keys.call:
        for key, statistics in first.commit.statistics.items():
            for effect in _EFFECTS:
                effects[key, effect] = getattr(statistics, effect)
        return effects
    answers, types = first.keys.answers, list(catalog.types)
    for start in range(0, len(answers), 4):
        place, *numbers = answers[start : start + 4]
        for effect, number in zip(_EFFECTS, numbers, strict=True):
            effects[types[place].table_key, effect] = number
    return effects
