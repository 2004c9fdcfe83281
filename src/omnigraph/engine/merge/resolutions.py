"""Owns the rows with which a caller resolves conflicts. They are read and checked like any rows.

A resolution decides about the entity that it names, whether both sides changed it or not. A missing
end of an edge, or a value that appears twice, can come from the combination of both sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.engine.graph_view import find_type
from omnigraph.engine.merge.state import MergeInputs
from omnigraph.engine.write.work import refuse
from omnigraph.errors import InvalidArgument
from omnigraph.lang.suggestions import near
from omnigraph.model.catalog import EdgeType, GraphType
from omnigraph.model.stored_queries import QUERY
from omnigraph.model.violation import Violation
from omnigraph.plan.merge import Row
from omnigraph.plan.rows.row_type import ENDS as SHOWN
from omnigraph.plan.rows.row_type import row_type
from omnigraph.plan.rows.typed import shape_rows
from omnigraph.plan.rules.book import ENDS, describe_move, free_ends
from omnigraph.plan.validate import check_rows

Answers = dict[str, dict[str, Row | None]]


def read_answers(m: MergeInputs) -> Answers:
    """By table key and id: whole rows of the merged type, or None for an entity to delete."""
    answers: Answers = {}
    violations: list[Violation] = []
    for (name, entity), given in (m.strategy.rows or {}).items():
        kind = find_type(m.catalog, name)
        row = None
        if given is not None:
            row = _whole(m, kind, entity, given, violations)
        answers.setdefault(kind.table_key, {})[entity] = row
    refuse(violations)
    return answers


def _whole(
    m: MergeInputs,
    kind: GraphType,
    entity: str,
    given: Mapping[str, Any],
    violations: list[Violation],
) -> Row | None:
    """Fills in what was not given from the entity on our side, else on theirs, else at the base."""
    known = (
        m.entity(m.ours, kind, entity) or m.entity(m.theirs, kind, entity) or m.was(kind, entity)
    )
    spellings = row_type(kind).spellings
    named = {spellings.get(name, name): value for name, value in given.items()}
    whole = {"id": entity} | (known or {}) | named
    shaped = shape_rows(kind, whole, complete=True, new_ids=lambda count: [entity] * count)
    if shaped.violations:
        violations += shaped.violations
        return None
    (group,) = shaped.groups
    row: Row = group.table.to_pylist()[0]
    if row["id"] != entity:
        violations.append(_other_id(kind, entity, row["id"]))
    if known is not None and isinstance(kind, EdgeType) and not kind.key:
        violations += [
            describe_move(kind, entity, end, known[end], row[end])
            for end in ENDS
            if row[end] != known[end]
        ]
    violations += check_rows(kind, group.table)
    return row


def check_places(m: MergeInputs) -> None:
    """Refuses a strategy for something that does not exist. It may name what a side dropped."""
    for where in m.strategy.places or {}:
        name, _, prop = where.partition(".")
        if name == QUERY:
            continue
        kind = m.catalog.find(name)
        was = m.base.catalog.find(name)
        if kind is None and was is None:
            kind = find_type(m.catalog, name)
        sides = [each for each in (kind, was) if each is not None]
        known = [p.name for each in sides for p in each.properties]
        known += [name for each in sides for end in free_ends(each) for name in (end, SHOWN[end])]
        if prop and prop not in known:
            guess = near(prop, known)
            raise InvalidArgument(
                f"The strategy names {where!r}, but {name} has no property {prop!r}.",
                help=f"Did you mean {guess!r}?" if guess else "",
            )


def _other_id(kind: GraphType, entity: str, found: str) -> Violation:
    return Violation(
        type=kind.name,
        rule="id",
        id=entity,
        property="id",
        value=found,
        message=f"The row that resolves {kind.name} {entity!r} has the id {found!r}.",
    )
