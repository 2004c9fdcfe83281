"""Owns merging plain values against a base: single values, sets and orders. Symmetric in the
sides."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Protocol, TypeVar

from omnigraph.model.schema import same

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)


class ContradictionError(Exception):
    """Both sides changed the value to different values."""


def pick(base: T, ours: T, theirs: T) -> T:
    """The value of the side that changed it. The same change on both sides is one change."""
    if same(ours, theirs) or same(base, theirs):
        return ours
    if same(base, ours):
        return theirs
    raise ContradictionError


class Named(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def rename_from(self) -> str | None: ...


def merge_rename(name: object, base: Named | None, ours: Named, theirs: Named) -> str | None:
    """The note of where the name came from: that of the side which gave it, and where both have
    it, of the side that changed the note."""
    if ours.name != theirs.name:
        return ours.rename_from if ours.name == name else theirs.rename_from
    try:
        before = base.rename_from if base is not None else None
        return pick(before, ours.rename_from, theirs.rename_from)
    except ContradictionError:
        return min(note for note in (ours.rename_from, theirs.rename_from) if note is not None)


def merge_sets(base: Iterable[H], ours: Iterable[H], theirs: Iterable[H]) -> set[H]:
    """What either side added, without what either side removed."""
    before, left, right = set(base), set(ours), set(theirs)
    return (before & left & right) | (left - before) | (right - before)


def merge_order(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str], members: Collection[str]
) -> list[str]:
    """An order for `members` that keeps what the sides agree on.

    A side that knows all members decides, if the other side has the order of the base or one that
    fits into it; otherwise additions go to the end, by name.
    """
    left = [m for m in ours if m in members]
    right = [m for m in theirs if m in members]
    shared = [m for m in base if m in members]
    for full, part in ((left, right), (right, left)):
        if len(full) == len(members) and (part == shared or _is_subsequence(part, full)):
            return full
    try:
        common = pick(shared, [m for m in left if m in shared], [m for m in right if m in shared])
    except ContradictionError:
        common = shared
    return [*common, *sorted(set(members) - set(common))]


def _is_subsequence(part: Sequence[str], full: Sequence[str]) -> bool:
    rest = iter(full)
    return all(member in rest for member in part)
