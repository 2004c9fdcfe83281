"""Owns the announcement of a cleanup: a commit on every branch before anything is deleted.

The commit carries the floor and a cutoff. Only files that were staged after the cutoff may be bound
to it (hazard 7).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from omnigraph.engine.history.refs import History
from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.survey import SurveyedChain, survey_chain
from omnigraph.engine.write.chain import Step, put_with_retry
from omnigraph.model.version import GraphVersion
from omnigraph.plan.publish import Lineage
from omnigraph.plan.retention import Cutoffs, Policy, resolve_floor, resolve_spent_chains
from omnigraph.plan.successor import Announce
from omnigraph.telemetry import Ledger

ACTOR = "omnigraph:maintenance"
KIND = "cleanup"


@dataclass(frozen=True)
class Announcement:
    """The announcement of one cleanup: what it may delete at most, and the versions that are still
    needed."""

    session: Session
    policy: Policy
    cutoffs: Cutoffs
    wanted: Collection[tuple[str, int]]
    ledger: Ledger

    def publish(self, chains: Mapping[str, SurveyedChain]) -> None:
        """Repeats until every chain carries the cutoff: a chain that was created meanwhile may not
        carry it yet."""
        waiting = dict(chains)
        spent = self._spent_chains(chains)
        while waiting:
            for chain in waiting.values():
                self._publish_on(chain, spent)
            waiting = {
                end.branch: survey_chain(self.session, end.branch, self.ledger)
                for end in History(self.session, self.ledger).ends()
                if not end.deleted and end.gc_cutoff < self.cutoffs.binding
            }

    def _spent_chains(self, chains: Mapping[str, SurveyedChain]) -> set[str]:
        """Chains of deleted branches of which nothing is readable and nobody has to know."""
        session, ledger = self.session, self.ledger
        points: list[GraphVersion] = []
        for branch, chain in chains.items():
            for version in chain.versions:
                if version.tag and (fork := version.forked_from) is not None:
                    points.append(session.read_record(fork.branch, fork.version, ledger))
                elif not version.deleted:
                    points.append(version)
            points += [session.read_record(branch, n, ledger) for n in chain.end.kept]
        return resolve_spent_chains(
            points, lambda key, n: session.read_record(key.split(":", 1)[1], n, ledger)
        )

    def _publish_on(self, chain: SurveyedChain, spent: Collection[str]) -> None:
        session, ledger = self.session, self.ledger

        def propose(end: GraphVersion | None) -> Step | None:
            nonlocal chain
            assert end is not None
            if end.version != chain.end.version:
                chain = survey_chain(session, end.branch, ledger)
            change = self._announce(chain, frozenset(spent))
            return None if change is None else Step(change)

        put_with_retry(session, chain.end.branch, lambda _: chain.end, propose, ledger)

    def _announce(self, chain: SurveyedChain, spent: frozenset[str]) -> Announce | None:
        end = chain.end
        floor = resolve_floor(chain.versions, chain.put_at, self.policy, self.cutoffs)
        if end.deleted and floor == end.floor:
            return None  # nobody binds to it, so there is nothing to announce
        # Versions that were kept before do not count: a deleted tag needs nothing. Nor do those
        # that another cleanup has deleted since this one looked.
        kept = {
            number for branch, number in self.wanted if branch == end.branch and end.retains(number)
        }
        lineage = Lineage(kind=KIND, operation=self.session.runtime.ulid(), actor=ACTOR)
        return Announce(
            lineage,
            floor=floor,
            kept=tuple(sorted(number for number in kept if number < floor)),
            cutoff=self.cutoffs.binding,
            spent=spent,
        )
