"""Owns the comparison of one accepted type with its declaration, as a whole."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from omnigraph.model.catalog import EdgeType
from omnigraph.model.schema import Card, EdgeDecl, NodeDecl, same
from omnigraph.plan.migrate.change import CATALOG_ONLY, MOVE_TO_NEW_TYPE, TypeChange, when_empty
from omnigraph.plan.migrate.constraints import (
    Constraint,
    IndexConstraint,
    Matches,
    Unique,
    Within,
    constrained,
    constraints_of,
    follows,
)
from omnigraph.plan.migrate.properties import plan_properties
from omnigraph.plan.migrate.renames import resolve_renames
from omnigraph.plan.migrate.steps import (
    AddConstraint,
    ChangeCard,
    ChangeKey,
    ChangeType,
    DropConstraint,
    MigrationStep,
    Tier,
    Unsupported,
)


def plan_type(change: TypeChange, notes: list[str]) -> Iterator[MigrationStep]:
    """The steps of one type, in the order in which they can be applied."""
    before, after = change.before, change.after
    renames = resolve_renames(
        {p.name: p.rename_from for p in before.properties},
        [(p.name, p.rename_from) for p in after.properties],
        may_be_new=change.inherited,
    )
    notes += [f"{change.table}: {note}" for note in renames.notes]
    for r in renames.refusals:
        yield Unsupported(
            type=change.table, property=r.name, code=r.code, reason=r.reason, help=r.help
        )
    names = renames.names
    columns: dict[str, str] = {}
    yield from _endpoints(change)
    yield from _drop_constraints(change, names)
    yield from plan_properties(change, renames, columns)
    yield from _describe_type(change)
    yield from _key(change, names)
    yield from _card(change)
    yield from _add_constraints(change, names, columns)


def _endpoints(change: TypeChange) -> Iterator[MigrationStep]:
    before, after = change.before, change.after
    if not (isinstance(before, EdgeType) and isinstance(after, EdgeDecl)):
        return
    ends = [change.ends.get(name, name) for name in (before.source, before.target)]
    if ends != [after.source, after.target]:
        yield Unsupported(
            type=change.table,
            code="OG-UN-102",
            reason=f"the ends of an edge type cannot change (from {ends[0]} -> {ends[1]} to "
            f"{after.source} -> {after.target}): existing edges would point at the wrong types",
            help="add a new edge type, move the edges, then drop this one",
        )


def _describe_type(change: TypeChange) -> Iterator[MigrationStep]:
    before, after = change.before, change.after
    changed = tuple(
        name
        for name in ("description", "instruction", "annotations", "implements")
        if not same(getattr(before, name, ()), getattr(after, name, ()))
    )
    if changed:
        yield ChangeType(
            type=change.table,
            changed=changed,
            implements=after.implements if isinstance(after, NodeDecl) else (),
            description=after.description,
            instruction=after.instruction,
            annotations=after.annotations,
            reason=CATALOG_ONLY,
        )


def _key(change: TypeChange, names: dict[str, str]) -> Iterator[MigrationStep]:
    old = tuple(names.get(name, name) for name in change.before.key)
    if old != change.after.key:
        step = ChangeKey(
            type=change.table,
            old=old,
            new=change.after.key,
            reason="ids come from the key, so the ids of all existing entities would change",
        )
        yield when_empty(change, step, code="OG-UN-103", remedy=MOVE_TO_NEW_TYPE)


def _card(change: TypeChange) -> Iterator[MigrationStep]:
    before, after = change.before, change.after
    if not (isinstance(before, EdgeType) and isinstance(after, EdgeDecl)):
        return
    old, new = before.card, after.card
    if old == new:
        return
    step = ChangeCard(
        type=change.table, old=old, new=new, reason=f"{CATALOG_ONLY}; the new bounds are wider"
    )
    if _is_tighter(old, new):
        reason = "sources with too few or too many edges would break it and are looked for first"
        step = msgspec.structs.replace(step, tier=Tier.VALIDATED, code="OG-MF-104", reason=reason)
    yield step


def _is_tighter(old: Card, new: Card) -> bool:
    return new.low > old.low or (new.high is not None and (old.high is None or new.high < old.high))


def _drop_constraints(change: TypeChange, names: dict[str, str]) -> Iterator[MigrationStep]:
    wanted = constraints_of(change.after, {})
    accepted = constraints_of(change.before, {}).values()
    for constraint, form in zip(accepted, constraints_of(change.before, names), strict=True):
        if form not in wanted:
            yield DropConstraint(
                type=change.table,
                constraint=constraint,
                reason=f"{CATALOG_ONLY}; every existing entity is still allowed",
            )


_CHECKED: dict[type[Constraint], tuple[str, str]] = {
    Unique: ("OG-MF-101", "entities that share a value would break it and are looked for first"),
    Within: ("OG-MF-102", "values outside the range would break it and are looked for first"),
    Matches: ("OG-MF-103", "values without a match would break it and are looked for first"),
}


def _add_constraints(
    change: TypeChange, names: dict[str, str], columns: dict[str, str]
) -> Iterator[MigrationStep]:
    accepted = constraints_of(change.before, names)
    for form, constraint in constraints_of(change.after, {}).items():
        if form in accepted:
            continue
        step = AddConstraint(
            type=change.table,
            constraint=constraint,
            columns=tuple(columns.get(name, name) for name in constrained(constraint)),
            reason="answers stay the same and are found faster"
            if isinstance(constraint, IndexConstraint)
            else f"{CATALOG_ONLY}; the accepted range lies inside the new one",
        )
        if not follows(constraint, accepted.values()):
            code, reason = _CHECKED[type(constraint)]
            step = msgspec.structs.replace(step, tier=Tier.VALIDATED, code=code, reason=reason)
        yield step
