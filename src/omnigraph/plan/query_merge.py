"""Owns the three-way merge of stored queries, by name. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from omnigraph.lang.gq.stored import BrokenQuery
from omnigraph.model.conflicts import ConflictKind, MergeConflict
from omnigraph.model.stored_queries import QUERY, Queries
from omnigraph.plan.merge import Strategy


@dataclass(frozen=True)
class QueryMerge:
    """The queries of both sides; `contested` are names that both changed, and not to the same."""

    queries: dict[str, str]
    conflicts: tuple[MergeConflict, ...] = ()

    @property
    def contested(self) -> frozenset[str]:
        return frozenset(one.id for one in self.conflicts if one.id is not None)


def merge_queries(
    base: Queries,
    ours: Queries,
    theirs: Queries,
    strategy: Strategy,
    answers: Mapping[str, str | None],
    contested: Collection[str] = (),
) -> QueryMerge:
    """A name that only one side changed is what that side made of it. An answer decides about its
    name, whether both changed it or not. `contested` names have no one text at the base, because
    there were several bases: there neither side can say that it changed nothing."""
    merged: dict[str, str] = {}
    conflicts = []
    for name in sorted({*ours, *theirs, *answers}):
        was, mine, yours = base.get(name), ours.get(name), theirs.get(name)
        sure = name not in contested
        if name in answers:
            text = answers[name]
        elif mine == yours or (sure and yours == was):
            text = mine
        elif sure and mine == was:
            text = yours
        else:
            side = strategy.side(QUERY, name)
            text = yours if side == "theirs" else mine
            if side is None:
                conflicts.append(_conflict(name, was, mine, yours))
        if text is not None:
            merged[name] = text
    return QueryMerge(merged, tuple(conflicts))


def broken_after_merge(
    broken: Iterable[BrokenQuery], base: Queries, ours: Queries, theirs: Queries
) -> tuple[MergeConflict, ...]:
    """Queries of one side that the schema of both does not allow."""
    return tuple(
        MergeConflict(
            ConflictKind.QUERY,
            QUERY,
            one.name,
            f"The stored query {one.name!r} would not run under the merged schema.\n{one.message}",
            base=base.get(one.name),
            ours=ours.get(one.name),
            theirs=theirs.get(one.name),
        )
        for one in broken
    )


def _conflict(name: str, was: str | None, mine: str | None, yours: str | None) -> MergeConflict:
    if mine is None or yours is None:
        removed, changed = ("ours", "theirs") if mine is None else ("theirs", "ours")
        said = f"was removed by {removed} and changed by {changed}"
    else:
        said = f"was {'added' if was is None else 'changed'} by both, with different texts"
    return MergeConflict(
        ConflictKind.QUERY,
        QUERY,
        name,
        f"The stored query {name!r} {said}.",
        base=was,
        ours=mine,
        theirs=yours,
    )
