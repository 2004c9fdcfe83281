"""Owns the decisions of cleanup: which versions of a chain stay, and which files may go. Pure.

All times are microseconds. Two clocks are involved: commits carry the clock of their writer,
files carry that of the store. Only the clock of the store decides what may be deleted (hazard
7).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from omnigraph.errors import InvalidArgument
from omnigraph.model.version import UNSEEN, GraphVersion, chain_key, past

_SECOND = 1_000_000
_LARGEST_SKEW = 300 * _SECOND
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")


@dataclass(frozen=True)
class Policy:
    """`keep` commits that a reader can see stay on every branch, and all that are younger than
    `older_than`; nothing that is younger than `grace` is touched."""

    keep: int
    older_than: int
    grace: int


@dataclass(frozen=True)
class Cutoffs:
    """Files from before `files` may go. A writer that binds to what cleanup publishes must have
    staged and looked up everything after `binding`, which is later by the difference that clocks
    may have. Commits from before `commits` are old."""

    files: int
    binding: int
    commits: int


def read_duration(given: str | float | timedelta, what: str) -> int:
    """Seconds as a number, or a text such as "7d", "12h", "30m"."""
    seconds: float
    if isinstance(given, timedelta):
        seconds = given.total_seconds()
    elif isinstance(given, str):
        match = _DURATION.fullmatch(given.strip())
        if match is None:
            raise InvalidArgument(
                f"{what} {given!r} is not a duration.", help="Write 7d, 12h, 30m, 90s or 2w."
            )
        seconds = float(match[1]) * _UNITS[match[2]]
    elif isinstance(given, int | float) and not isinstance(given, bool):
        seconds = given
    else:
        raise InvalidArgument(f"{what} is a duration, not {type(given).__name__}.")
    if not 0 <= seconds < 1e10:
        raise InvalidArgument(f"{what} {given!r} is not a duration from now back.")
    return int(seconds * _SECOND)


def resolve_cutoffs(now: int, policy: Policy, *, oldest_intent: int | None) -> Cutoffs:
    """`now` by the store's clock. What a long operation has staged since it said that it would
    is as if it were young."""
    skew = min(_LARGEST_SKEW, policy.grace // 4)
    files = now - policy.grace
    if oldest_intent is not None:
        # Who has the intent must come out as young, also by a clock that is behind.
        files = min(files, oldest_intent - 2 * skew)
    return Cutoffs(files=files, binding=files + skew, commits=now - policy.older_than)


def resolve_floor(
    versions: Sequence[GraphVersion],
    put_at: Mapping[int, int],
    policy: Policy,
    cutoffs: Cutoffs,
) -> int:
    """The oldest version of a chain that stays, given all that it has, oldest first, and when the
    store took each. Every version that was the head at or after the cutoff stays, because
    somebody may be about to build on it; of the others none from before what was forgotten."""
    end = versions[-1]
    was_head = _newest(versions, lambda one: put_at.get(one.version, 0) <= cutoffs.files)
    if end.deleted:  # also a tag, which holds all that it stands for itself
        gone = [one for one in versions if one.version < was_head]
        # An end that follows on ends alone has nothing below it that is worth a commit.
        spent = any(_holds_more(one, end) for one in gone)
        return max(end.floor, was_head) if spent else end.floor
    young = _newest(versions, lambda one: one.commit.created_at <= cutoffs.commits)
    wanted = max(min(young, _kept_from(versions, policy.keep)), end.forgotten)
    return max(end.floor, min(was_head, wanted))


def _kept_from(versions: Sequence[GraphVersion], keep: int) -> int:
    """The oldest version of the last so many that a reader can tell apart. What maintenance made
    of one stands for it: the files from before would only be a second copy."""
    seen, newest = 0, versions[-1].version
    for version in reversed(versions):
        if version.commit.kind in UNSEEN:
            continue
        seen += 1
        if seen >= keep:
            return newest
        newest = version.version - 1
    return versions[0].version


def resolve_folded(end: GraphVersion, put_at: Mapping[int, int], cutoff: int, block: int) -> int:
    """Up to which version a chain can be folded into its archive, in whole blocks: every version
    that was the head at or after the cutoff stays where it is."""
    was_head = end.bottom
    while put_at.get(was_head + 1, cutoff + 1) <= cutoff and was_head < end.version:
        was_head += 1
    return end.bottom + (was_head - end.bottom) // block * block


def _holds_more(version: GraphVersion, end: GraphVersion) -> bool:
    """Whether a version keeps tables from being cleaned that the end of its chain does not."""
    if not version.deleted:
        return True
    return version.tag and not (end.tag and version.tables == end.tables)


def _newest(versions: Sequence[GraphVersion], early: object) -> int:
    """The last version up to which all are early; the first if none is."""
    assert callable(early)
    found = versions[0].version
    for version in versions:
        if not early(version):
            break
        found = version.version
    return found


def resolve_spent_chains(
    points: Sequence[GraphVersion], read: Callable[[str, int], GraphVersion]
) -> set[str]:
    """Chains that no ancestry has to name any more, given all versions from which somebody can
    go on. Nothing of such a chain can be read. One version contains all that any version has of
    it, and is in the past of every version that has some of it. So the chain never holds the
    newest version that two of them have in common."""
    own = {chain_key(point) for point in points}
    holders: dict[str, list[GraphVersion]] = {}
    for point in points:
        for chain in point.ancestry:
            if chain not in own:
                holders.setdefault(chain, []).append(point)
    return {chain for chain, some in holders.items() if _is_covered(chain, some, own, read)}


def _is_covered(
    chain: str,
    holders: Sequence[GraphVersion],
    own: Collection[str],
    read: Callable[[str, int], GraphVersion],
) -> bool:
    newest = max(holder.ancestry[chain] for holder in holders)
    pasts = [past(holder) for holder in holders]
    shared = set(pasts[0]).intersection(own, *pasts[1:])
    for other in sorted(shared):
        oldest = read(other, min(known[other] for known in pasts))
        if oldest.ancestry.get(chain, 0) >= newest:
            return True
    return False


def below_floor(
    floors: Mapping[str, int], wanted: Collection[tuple[str, int]]
) -> dict[str, tuple[int, ...]]:
    """The needed versions, by branch, that their chain no longer holds."""
    found: dict[str, set[int]] = {}
    for branch, number in wanted:
        if number < floors.get(branch, 1):
            found.setdefault(branch, set()).add(number)
    return {branch: tuple(sorted(numbers)) for branch, numbers in found.items()}
