"""Owns how a load checks the rules between its rows and the graph: which relations each rule joins,
and what may be left out because a cheaper look has shown that nothing is wrong. It is the same for
every engine; an engine brings the relations."""

from __future__ import annotations

from typing import assert_never

from omnigraph.engine.load.ground import Ground, R
from omnigraph.engine.load.phases import H
from omnigraph.model.catalog import EdgeType, GraphType
from omnigraph.plan.rules import joins
from omnigraph.plan.rules.book import (
    Card,
    Ends,
    NewId,
    OneRow,
    Orphans,
    Unique,
    final_rules,
)


def check_load(ground: Ground[H, R]) -> None:
    """Ids first, then whole rows, then the rules of the book. The load ends at the first stage that
    refuses anything, unless rows are set aside."""
    state = ground.state
    check_ids(ground)
    state.halt()
    if state.mode == "append":
        check_new(ground)
    elif state.mode == "merge":
        ground.complete()
    state.halt()
    check_rules(ground)
    state.halt()


def check_ids(ground: Ground[H, R]) -> None:
    """An id stands once in an input, whatever the mode."""
    for kind in ground.kinds:
        if ground.generated(kind) or ground.left(kind) < 2:
            continue
        if not ground.may_exceed(kind, ("id",)):
            continue
        rows = ground.arriving(kind, ("id",))
        again = joins.repeated(ground, rows, ("id",))
        ground.refuse(OneRow(kind), joins.later(ground, rows, again, ("id",)))


def check_new(ground: Ground[H, R]) -> None:
    """What is appended must not be there."""
    for kind in ground.kinds:
        if ground.generated(kind) or not ground.left(kind) or not ground.keeps(kind):
            continue
        if ground.many(kind) and not ground.may_exceed(kind, ("id",), stored=True):
            continue
        rows = ground.sized(ground.arriving(kind, ("id",)), ground.left(kind))
        stored = _sized(ground, kind, ground.stored(kind, ("id",)))
        ground.refuse(NewId(kind), joins.sharing(ground, rows, stored, ("id",)))


def check_rules(ground: Ground[H, R]) -> None:
    """In the order of the book. With `every` a refused row takes no further part, else nobody
    asks what would follow from it."""
    changed = {kind.table_key for kind in ground.kinds}
    replaced = {kind.table_key for kind in ground.kinds if ground.replaced(kind)}
    for rule in final_rules(ground.snapshot.catalog, changed, replaced):
        match rule:
            case Unique():
                # Refusing a row gives back the value that the entity had, which may clash again.
                while _check_unique(ground, rule) and ground.every:
                    pass
            case Ends():
                if ground.left(rule.kind):
                    ground.refuse(rule, ground.missing(rule))
            case Card():
                _check_card(ground, rule)
            case Orphans():
                _check_orphans(ground, rule)
            case OneRow() | NewId():
                raise AssertionError("ids are checked before rows are whole")
            case _:
                assert_never(rule)


def _sized(ground: Ground[H, R], kind: GraphType, relation: R) -> R:
    return ground.sized(relation, ground.snapshot.view(kind).table.rows)


def _check_unique(ground: Ground[H, R], rule: Unique) -> int:
    kind, columns = rule.kind, rule.columns
    if not ground.left(kind):
        return 0
    keeps = ground.keeps(kind)
    together = keeps and ground.many(kind) and not ground.replacing(kind)
    repeats = ground.may_exceed(kind, columns, stored=together)
    if not repeats and (together or not keeps):
        return 0
    rows = ground.arriving(kind, ("id",), columns)
    keys = ground.keys(kind, columns)
    found: list[R] = []
    if repeats:
        again = joins.repeated(ground, rows, keys)
        found.append(joins.later(ground, rows, again, keys))
    if keeps:
        others = ground.stored(kind, unique=columns)
        if ground.replacing(kind):
            others = joins.staying(ground, others, ground.origins(kind))
        found.append(joins.sharing(ground, rows, _sized(ground, kind, others), keys))
    clashing = found[0]
    for more in found[1:]:
        clashing = joins.either(ground, clashing, more, ["place", "id", *keys])
    return ground.refuse(rule, clashing)


def _check_card(ground: Ground[H, R], rule: Card) -> None:
    kind, low, high = rule.kind, rule.kind.card.low, rule.kind.card.high
    if high is not None and ground.left(kind) and _may_exceed_card(ground, kind, high):
        rows, held = _edges(ground, kind)
        wrong = joins.totals(ground, rows, held, f"n > {high}")
        if not ground.is_empty(wrong):  # as a rule it is, and then no row has to travel
            replacing = ground.replacing(kind)
            found = joins.beyond(ground, rows, held, wrong, high, replacing=replacing)
            ground.refuse(rule, found)
    if low and ground.left(kind):
        rows, held = _edges(ground, kind)
        wrong = joins.totals(ground, rows, held, f"n < {low}")
        ground.refuse(rule, joins.of_sources(ground, rows, wrong))
    if low and ground.replaced(kind):
        _check_abandoned(ground, rule)


def _may_exceed_card(ground: Ground[H, R], kind: EdgeType, high: int) -> bool:
    stays = ground.keeps(kind)
    if stays and ground.replacing(kind):
        return True  # what is replaced would count twice
    return ground.may_exceed(kind, ("src",), high, stored=stays)


def _edges(ground: Ground[H, R], kind: EdgeType) -> tuple[R, R | None]:
    """Arriving edges, and how many each source keeps in the table."""
    rows = ground.arriving(kind, ("src",))
    if not ground.keeps(kind):
        return rows, None
    stored = ground.stored(kind, ("src",))
    if ground.replacing(kind):
        stored = joins.staying(ground, stored, ground.origins(kind))
    return rows, joins.counted(ground, stored)


def _check_abandoned(ground: Ground[H, R], rule: Card) -> None:
    """Sources that had edges before everything was replaced, and are still there."""
    kind = rule.kind
    if not ground.snapshot.view(kind).table.rows:
        return
    rows = ground.arriving(kind, ("src",)) if ground.left(kind) else None
    lost = joins.without_any(ground, ground.before(kind, ("src",)), rows)
    node = ground.snapshot.catalog.node_names[kind.source]
    ground.tell(rule, ground.alive(lost, node))


def _check_orphans(ground: Ground[H, R], rule: Orphans) -> None:
    if not ground.keeps(rule.edge):
        return
    edges = ground.before(rule.edge, ("id",), rule.end)
    nodes = ground.nodes(rule.kind)
    ground.tell(rule, edges if nodes is None else joins.loose(ground, edges, nodes))
