"""Owns the question what two heads have in common: their merge base, from what they carry.

Every version knows up to which version each other chain is part of its past. The past of a
version is closed under parents, so on each chain it is a beginning of it, and what two pasts
share on a chain is the shorter beginning.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from omnigraph.engine.session import Session
from omnigraph.errors import Corrupt
from omnigraph.model.version import GraphVersion, chain_key
from omnigraph.store.objects import Absent
from omnigraph.telemetry import Ledger

_LOOKED_AT = 32
_PARALLEL = 8


def past(version: GraphVersion) -> dict[str, int]:
    """For each chain, the newest version of it that this one contains."""
    return version.ancestry | {chain_key(version): version.version}


def contains(version: GraphVersion, other: GraphVersion) -> bool:
    return past(version).get(chain_key(other), 0) >= other.version


def joined(head: GraphVersion, other: GraphVersion) -> dict[str, int]:
    """The ancestry of a version on the head's chain that also has the other's past."""
    result = dict(head.ancestry)
    for chain, number in past(other).items():
        result[chain] = max(number, result.get(chain, 0))
    result.pop(chain_key(head), None)
    return result


def origin_of(session: Session, version: GraphVersion, ledger: Ledger) -> GraphVersion:
    """A branch without commits of its own stands where it was forked from."""
    while version.version == version.first and version.forked_from is not None:
        fork = version.forked_from
        version = _read(session, fork.branch, fork.version, ledger)
    return version


def find_merge_base(
    session: Session, ours: GraphVersion, theirs: GraphVersion, ledger: Ledger
) -> GraphVersion:
    """The newest version in both pasts that is in the past of no other such version. Of several
    (after merges in both directions at once) the one that was made last."""
    mine, yours = past(ours), past(theirs)
    shared = {chain: min(mine[chain], yours[chain]) for chain in mine.keys() & yours.keys()}
    if not shared:
        raise Corrupt(f"{ours.branch!r} and {theirs.branch!r} have no history in common.")
    newest_first = sorted(shared.items(), key=lambda item: -item[1])[:_LOOKED_AT]

    def read(item: tuple[str, int]) -> GraphVersion:
        incarnation_and_name, number = item
        return _read(session, incarnation_and_name.split(":", 1)[1], number, ledger)

    with ThreadPoolExecutor(_PARALLEL) as pool:
        candidates = list(pool.map(read, newest_first))
    best = [
        one
        for one in candidates
        if not any(contains(other, one) for other in candidates if other is not one)
    ]
    return max(best or candidates, key=lambda version: version.commit.created_at)


def _read(session: Session, branch: str, number: int, ledger: Ledger) -> GraphVersion:
    try:
        return session.read_version(branch, number, ledger)
    except Absent:
        raise Corrupt(f"Version {number} of the branch {branch!r} is missing.") from None
