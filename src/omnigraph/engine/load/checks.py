"""Owns how a load checks the rules between its rows and the graph: which relations each rule
joins, and what may be skipped because a cheaper check has shown that nothing is wrong. It is the
same for every engine; an engine brings the relations."""

from __future__ import annotations

from typing import assert_never

from omnigraph.engine.load.phases import H
from omnigraph.engine.load.relations import LoadRelations, R
from omnigraph.model.catalog import EdgeType, GraphType
from omnigraph.plan.rules import joins
from omnigraph.plan.rules.book import (
    CardRule,
    Ends,
    NewId,
    OneRow,
    Orphans,
    UniqueRule,
    final_rules,
    free_ends,
)


def check_load(relations: LoadRelations[H, R]) -> None:
    """Checks ids first, then whole rows, then the rules of the book. The load ends at the first
    stage that refuses anything, unless rows are set aside."""
    state = relations.state
    check_ids(relations)
    state.halt()
    if state.mode == "append":
        check_new(relations)
    elif state.mode == "merge":
        relations.complete()
    state.halt()
    check_rules(relations)
    state.halt()


def check_ids(relations: LoadRelations[H, R]) -> None:
    """An id may appear only once in the input, in every mode."""
    for kind in relations.kinds:
        if relations.generated(kind) or relations.left(kind) < 2:
            continue
        if not relations.may_exceed(kind, ("id",)):
            continue
        rows = relations.arriving(kind, ("id",))
        again = joins.repeated(relations, rows, ("id",))
        relations.refuse(OneRow(kind), joins.later(relations, rows, again, ("id",)))


def check_new(relations: LoadRelations[H, R]) -> None:
    """Entities that are appended must not exist yet."""
    for kind in relations.kinds:
        if relations.generated(kind) or not relations.left(kind) or not relations.keeps(kind):
            continue
        if relations.many(kind) and not relations.may_exceed(kind, ("id",), stored=True):
            continue
        rows = relations.sized(relations.arriving(kind, ("id",)), relations.left(kind))
        stored = _sized(relations, kind, relations.stored(kind, ("id",)))
        relations.refuse(NewId(kind), joins.sharing(relations, rows, stored, ("id",)))


def check_rules(relations: LoadRelations[H, R]) -> None:
    """Checks the rules in the order of the book. With `every`, a refused row takes no further part;
    otherwise nobody asks what would follow from it."""
    changed = {kind.table_key for kind in relations.kinds}
    replaced = {kind.table_key for kind in relations.kinds if relations.replaced(kind)}
    for rule in final_rules(relations.snapshot.catalog, changed, replaced):
        match rule:
            case UniqueRule():
                # If a row is refused, its entity keeps the old value, which may clash again.
                while _check_unique(relations, rule) and relations.every:
                    pass
            case Ends():
                if relations.left(rule.kind):
                    relations.refuse(rule, relations.missing(rule))
            case CardRule():
                _check_card(relations, rule)
            case Orphans():
                _check_orphans(relations, rule)
            case OneRow() | NewId():
                raise AssertionError("ids are checked before rows are whole")
            case _:
                assert_never(rule)


def _sized(relations: LoadRelations[H, R], kind: GraphType, relation: R) -> R:
    return relations.sized(relation, relations.snapshot.view(kind).table.rows)


def _check_unique(relations: LoadRelations[H, R], rule: UniqueRule) -> int:
    kind, columns = rule.kind, rule.columns
    if not relations.left(kind):
        return 0
    keeps = relations.keeps(kind)
    together = keeps and relations.many(kind) and not relations.replacing(kind)
    repeats = relations.may_exceed(kind, columns, stored=together)
    if not repeats and (together or not keeps):
        return 0
    rows = relations.arriving(kind, ("id",), columns)
    keys = relations.keys(kind, columns)
    found: list[R] = []
    if repeats:
        again = joins.repeated(relations, rows, keys)
        found.append(joins.later(relations, rows, again, keys))
    if keeps:
        others = relations.stored(kind, unique=columns)
        if relations.replacing(kind):
            others = joins.staying(relations, others, relations.origins(kind))
        found.append(joins.sharing(relations, rows, _sized(relations, kind, others), keys))
    clashing = found[0]
    for more in found[1:]:
        clashing = joins.either(relations, clashing, more, ["place", "id", *keys])
    return relations.refuse(rule, clashing)


def _check_card(relations: LoadRelations[H, R], rule: CardRule) -> None:
    kind, low, high = rule.kind, rule.kind.card.low, rule.kind.card.high
    if high is not None and relations.left(kind) and _may_exceed_card(relations, kind, high):
        rows, held = _edges(relations, kind)
        wrong = joins.totals(relations, rows, held, f"n > {high}")
        if not relations.is_empty(wrong):  # usually so, and then no rows have to be moved
            replacing = relations.replacing(kind)
            found = joins.beyond(relations, rows, held, wrong, high, replacing=replacing)
            relations.refuse(rule, found)
    if low and relations.left(kind):
        rows, held = _edges(relations, kind)
        wrong = joins.totals(relations, rows, held, f"n < {low}")
        relations.refuse(rule, joins.of_sources(relations, rows, wrong))
    if low and relations.replaced(kind):
        _check_abandoned(relations, rule)
    elif low and "src" in free_ends(kind) and relations.left(kind) and relations.replacing(kind):
        _check_moved(relations, rule)


def _may_exceed_card(relations: LoadRelations[H, R], kind: EdgeType, high: int) -> bool:
    stays = relations.keeps(kind)
    if stays and relations.replacing(kind):
        return True  # rows that are replaced would count twice
    return relations.may_exceed(kind, ("src",), high, stored=stays)


def _edges(relations: LoadRelations[H, R], kind: EdgeType) -> tuple[R, R | None]:
    """Arriving edges, and how many edges each source keeps in the table."""
    rows = relations.arriving(kind, ("src",))
    if not relations.keeps(kind):
        return rows, None
    stored = relations.stored(kind, ("src",))
    if relations.replacing(kind):
        stored = joins.staying(relations, stored, relations.origins(kind))
    return rows, joins.counted(relations, stored)


def _check_abandoned(relations: LoadRelations[H, R], rule: CardRule) -> None:
    """Sources that had edges before everything was replaced, and that still exist."""
    kind = rule.kind
    if not relations.snapshot.view(kind).table.rows:
        return
    rows = relations.arriving(kind, ("src",)) if relations.left(kind) else None
    lost = joins.without_any(relations, relations.before(kind, ("src",)), rows)
    node = relations.snapshot.catalog.node_names[kind.source]
    relations.report(rule, relations.alive(lost, node))


def _check_moved(relations: LoadRelations[H, R], rule: CardRule) -> None:
    """Sources from which edges were moved away, and that still exist."""
    kind = rule.kind
    before, origins = relations.before(kind, ("address", "src")), relations.origins(kind)
    lost = joins.without_any(
        relations,
        joins.replaced(relations, before, origins),
        relations.arriving(kind, ("src",)),
    )
    if relations.is_empty(lost):
        return
    left = joins.counted(relations, joins.staying(relations, before, origins))
    wrong = joins.remaining(relations, lost, left, f"n < {kind.card.low}")
    node = relations.snapshot.catalog.node_names[kind.source]
    relations.report(rule, relations.alive(wrong, node))


def _check_orphans(relations: LoadRelations[H, R], rule: Orphans) -> None:
    if not relations.keeps(rule.edge):
        return
    edges = relations.before(rule.edge, ("id",), rule.end)
    nodes = relations.nodes(rule.kind)
    relations.report(rule, edges if nodes is None else joins.loose(relations, edges, nodes))
