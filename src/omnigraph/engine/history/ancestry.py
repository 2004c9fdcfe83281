"""Owns finding the merge base of two heads, from what the heads carry.

Every version knows up to which version each other chain is part of its past. The past of a
version is closed under parents, so on each chain it is a beginning of it, and what two pasts
share on a chain is the shorter beginning.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.engine.session import Session
from omnigraph.errors import Corrupt
from omnigraph.model.version import UNSEEN, GraphVersion, chain_key, past
from omnigraph.store.history import lost_version
from omnigraph.store.objects import Absent
from omnigraph.telemetry import Ledger


def contains(version: GraphVersion, other: GraphVersion) -> bool:
    return past(version).get(chain_key(other), 0) >= other.version


def joined(head: GraphVersion, other: GraphVersion) -> dict[str, int]:
    """The ancestry of a version on the head's chain whose past also contains the past of the
    other."""
    result = dict(head.ancestry)
    for chain, number in past(other).items():
        result[chain] = max(number, result.get(chain, 0))
    result.pop(chain_key(head), None)
    return result


def origin_of(session: Session, version: GraphVersion, ledger: Ledger) -> GraphVersion:
    """The version that a branch without commits of its own stands for: the one it was forked from,
    or the one a fast-forward brought. Maintenance makes no commits that anybody sees, so it does
    not count. Such a branch can be forwarded again."""
    while True:
        if version.version == version.first:
            if (fork := version.forked_from) is None:
                return version
            version = _read(session, fork.branch, fork.version, ledger)
        elif version.forwarded and version.merged is not None:
            version = _read(session, version.merged.branch, version.merged.version, ledger)
        elif version.commit.kind in UNSEEN:
            version = _read(session, version.branch, version.version - 1, ledger)
        else:
            return version


def shared_past(ours: Iterable[GraphVersion], theirs: GraphVersion) -> dict[str, int]:
    """For each chain that both pasts contain, the newest version that both contain. Nothing else
    decides on the merge bases of the two."""
    mine: dict[str, int] = {}
    for one in ours:
        for chain, number in past(one).items():
            mine[chain] = max(number, mine.get(chain, 0))
    yours = past(theirs)
    return {chain: min(mine[chain], yours[chain]) for chain in mine.keys() & yours.keys()}


def find_merge_bases(
    session: Session, ours: Iterable[GraphVersion], theirs: GraphVersion, ledger: Ledger
) -> list[GraphVersion]:
    """The versions in both pasts that are in the past of no other such version, newest first. There
    are several after merges in both directions at once. `ours` may be several versions taken
    together, in the way that their merge would be.

    Each version that is read rules out the chains that it contains. So looking first where heads
    usually come from takes one or two reads, and never more than there are chains.
    """
    ours = list(ours)
    shared = shared_past(ours, theirs)
    if not shared:
        raise Corrupt(f"{ours[0].branch!r} and {theirs.branch!r} have no history in common.")
    heads = [*ours, theirs]
    near = [*(chain_key(one) for one in heads), *(fork for one in heads for fork in _forks(one))]
    left = dict.fromkeys([chain for chain in near if chain in shared])
    left |= dict.fromkeys(sorted(shared, key=lambda chain: -shared[chain]))
    best: list[GraphVersion] = []
    while left:
        chain = next(iter(left))
        version = _read(session, chain.split(":", 1)[1], shared[chain], ledger)
        held = past(version)
        left = {other: None for other in left if held.get(other, 0) < shared[other]}
        best = [one for one in best if not contains(version, one)]
        best.append(version)
    # Branches that were forwarded to the same commit have it as versions of their own.
    by_commit = {version.commit.id: version for version in best}
    return sorted(
        by_commit.values(), key=lambda one: (one.commit.created_at, one.commit.id), reverse=True
    )


def _forks(version: GraphVersion) -> list[str]:
    fork = version.forked_from
    return [] if fork is None else [f"{fork.incarnation}:{fork.branch}"]


def _read(session: Session, branch: str, number: int, ledger: Ledger) -> GraphVersion:
    try:
        return session.read_record(branch, number, ledger)
    except Absent:
        raise lost_version(branch, number) from None
