"""Owns what cleanup says before it deletes: on every branch a commit that carries the floor and the
time since when everything must have been staged that is bound to it (hazard 7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.survey import Chain, survey_chain, survey_chains
from omnigraph.engine.write.publisher import RECENT_SAME, commit_after, put_version
from omnigraph.plan.retain import Cutoffs, Policy, resolve_floor
from omnigraph.plan.succession import follow
from omnigraph.telemetry import Ledger

ACTOR = "omnigraph:maintenance"
KIND = "cleanup"


class Announcement:
    """One cleanup's: what it may take at most, and the versions that something needs."""

    def __init__(
        self,
        session: Session,
        policy: Policy,
        cutoffs: Cutoffs,
        wanted: Collection[tuple[str, int]],
        ledger: Ledger,
    ) -> None:
        self._session = session
        self._policy = policy
        self._cutoffs = cutoffs
        self._wanted = wanted
        self._ledger = ledger

    def publish(self, chains: Mapping[str, Chain]) -> None:
        """Until every chain carries the cutoff: one that was created meanwhile may not yet."""
        waiting = dict(chains)
        while waiting:
            for chain in waiting.values():
                self._publish_on(chain)
            waiting = {
                branch: chain
                for branch, chain in survey_chains(self._session, self._ledger).items()
                if not chain.end.deleted and chain.end.gc_cutoff < self._cutoffs.binding
            }

    def _publish_on(self, chain: Chain) -> None:
        session, ledger = self._session, self._ledger
        while True:
            end = chain.end
            floor = resolve_floor(chain.versions, chain.put_at, self._policy, self._cutoffs)
            if end.deleted and floor == end.floor:
                return  # nobody binds to it, and there is nothing to say
            # Not what was kept before: a tag that is gone needs nothing any more. Nor what another
            # cleanup has taken since this one looked.
            kept = {
                number
                for branch, number in self._wanted
                if branch == end.branch and end.retains(number)
            }
            version = follow(
                end,
                token=session.runtime.ulid(),
                floor=floor,
                kept=tuple(sorted(number for number in kept if number < floor)),
                gc_cutoff=max(end.gc_cutoff, self._cutoffs.binding),
            )
            if end.tag:  # it goes on standing for the same commit
                version = msgspec.structs.replace(version, first=version.version)
            else:
                version = msgspec.structs.replace(
                    version,
                    commit=commit_after(
                        session, end, kind=KIND, operation=session.runtime.ulid(), actor=ACTOR
                    ),
                    same=(end.commit.id, *end.same)[:RECENT_SAME],
                    maintained=end.maintained + 1,
                )
            if put_version(session, version, ledger) is None:
                return
            chain = survey_chain(session, end.branch, ledger)
