"""Owns the reading of `@rename_from`: which old name became which new one, and which cannot be.

The annotation usually stays in the text after it was applied, so most of the work is telling a
rename that is wanted from one that is history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Refusal:
    name: str
    code: str
    reason: str
    help: str


@dataclass(frozen=True)
class Renames:
    """`names` maps old to new. Names that a refusal is about are `disputed`: comparing them any
    further would only tell of losses that nobody asked for."""

    names: dict[str, str] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    disputed: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def resolve_renames(
    accepted: Mapping[str, str | None],
    desired: Sequence[tuple[str, str | None]],
    *,
    may_be_new: Collection[str] = (),
) -> Renames:
    """Match accepted names (each with the rename it already went through) with desired ones.

    A name in `may_be_new` with nothing to rename is an addition; elsewhere it is a refusal, since
    a misspelt old name would otherwise drop what it meant to keep.
    """
    wanted = {
        new: old
        for new, old in desired
        if old is not None and old != new and accepted.get(new) != old
    }
    declared = {new for new, _ in desired}
    refusals: list[Refusal] = []
    notes: list[str] = []
    pending = {new: old for new, old in wanted.items() if old in accepted}
    for new, old in wanted.items():
        if old not in accepted and new not in accepted:
            if new in may_be_new:
                notes.append(f'@rename_from("{old}") on {new}: nothing to rename, so it is new')
            else:
                refusals.append(_nothing_to_rename(new, old))
    claims = Counter(pending.values())
    for new, old in list(pending.items()):
        if claims[old] > 1:
            refusals.append(_claimed_twice(new, old))
            del pending[new]
    _settle(pending, accepted, declared, refusals, notes)
    stuck = [new for new, old in pending.items() if old in declared and old not in pending]
    refusals += [_still_declared(new, pending.pop(new)) for new in stuck]
    disputed = {name for r in refusals for name in (r.name, wanted[r.name])}
    # A chain that leads to a disputed name cannot be followed either.
    while hit := {n for n, o in pending.items() if n in disputed or o in disputed}:
        disputed |= hit | {pending.pop(n) for n in hit}
    names = {old: new for new, old in pending.items()}
    return Renames(names, tuple(refusals), frozenset(disputed), tuple(notes))


def _settle(
    pending: dict[str, str],
    accepted: Mapping[str, str | None],
    declared: Collection[str],
    refusals: list[Refusal],
    notes: list[str],
) -> None:
    """Take out the renames onto names that are taken and stay taken, until none is left."""
    while True:
        moving = set(pending.values())
        blocked = [new for new in pending if new in accepted and new not in moving]
        if not blocked:
            return
        for new in blocked:
            old = pending.pop(new)
            if old in declared:
                notes.append(f'@rename_from("{old}") on {new}: ignored, both are there already')
            else:
                refusals.append(_both_exist(new, old))


def _nothing_to_rename(new: str, old: str) -> Refusal:
    return Refusal(
        new,
        "OG-UN-106",
        f'@rename_from("{old}") on {new} finds nothing called {old}',
        f"correct the old name, or remove the annotation to add {new} as new",
    )


def _both_exist(new: str, old: str) -> Refusal:
    return Refusal(
        new,
        "OG-UN-105",
        f"{old} cannot be renamed to {new}: {new} exists already",
        f"drop {new} first, or remove the annotation to keep {new} and drop {old}",
    )


def _claimed_twice(new: str, old: str) -> Refusal:
    return Refusal(
        new,
        "OG-UN-107",
        f'{old} is claimed by more than one @rename_from("{old}")',
        "keep the annotation on one of them",
    )


def _still_declared(new: str, old: str) -> Refusal:
    return Refusal(
        new,
        "OG-UN-108",
        f"{old} is renamed to {new} and declared as well",
        f"remove {old}, or apply the rename first and add the new {old} afterwards",
    )
