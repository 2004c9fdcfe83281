"""Owns recovery: it lists intents with their age, resumes them from their plans, or discards them.

Resuming publishes what was staged, once. Whether that has already happened is looked up in every
version since the intent was written, not only among recent keys (hazard 17).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from omnigraph.engine.after_commit import after_commit
from omnigraph.engine.session import Session
from omnigraph.engine.write.durability import sync_actions
from omnigraph.engine.write.publisher import publish
from omnigraph.errors import Conflict, Corrupt, IntentNotFound, InvalidArgument, ReadOnly
from omnigraph.model.commit_text import read_word
from omnigraph.model.formats import lift_plan
from omnigraph.model.stored_text import UNDECODABLE
from omnigraph.model.version import Commit, ForkPoint, GraphVersion
from omnigraph.plan.publish import Lineage, PublishPlan
from omnigraph.store.intents import (
    FILES,
    Intent,
    KnownIntent,
    delete_intent,
    intent_key,
    list_intents,
    write_intent,
)
from omnigraph.store.jobs import delete_below, is_folder
from omnigraph.store.objects import Absent
from omnigraph.store.versions import encode_branch
from omnigraph.telemetry import Ledger

ACTOR = "omnigraph:recovery"
DISCARD = "discard"
JOB = "job"
_PLAN_DECODER = msgspec.json.Decoder(PublishPlan)


@dataclass(frozen=True)
class IntentReport:
    """`age` and `silent_for` are in seconds: since the operation began, and since its last sign of
    life. It is `dead` if it was silent for longer than the grace period. `job` is the name with
    which it can be run again. `problem` says why it cannot be read."""

    id: str
    kind: str | None
    actor: str | None
    branch: str | None
    age: float
    silent_for: float
    dead: bool
    resumable: bool
    problem: str = ""
    job: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class Recovery:
    """The intents of one graph."""

    def __init__(self, session: Session, *, writable: bool) -> None:
        self._session = session
        self._writable = writable

    def list(self) -> list[IntentReport]:
        """Oldest first."""
        known = list_intents(self._session.metered(Ledger()))
        return [self._report(one) for one in known]

    def begin(
        self,
        kind: str,
        *,
        actor: str | None = None,
        branch: str | None = None,
        base: GraphVersion | None = None,
        details: dict[str, str] | None = None,
        pins: tuple[ForkPoint, ...] = (),
        id: str | None = None,
        created_at: int | None = None,
    ) -> Intent:
        """Records the start of a long operation. What it stages from now on is safe, and so are the
        versions that it pins. With `created_at`, so is what it has staged since then."""
        actor = read_word("actor", actor)
        if branch is not None:
            encode_branch(branch)
        runtime = self._session.runtime
        now = runtime.now()
        intent = Intent(
            id=runtime.ulid() if id is None else id,
            kind=kind,
            created_at=now if created_at is None else created_at,
            heartbeat=now,
            actor=actor,
            branch=branch,
            base=None if base is None else base.version,
            incarnation=None if base is None else base.incarnation,
            pins=pins,
            details=details or {},
        )
        write_intent(self._session.metered(Ledger()), intent)
        return intent

    def beat(self, intent: Intent, *, plan: PublishPlan | None = None) -> Intent:
        """Shows that it is still alive. With a plan, everything is staged and anybody can finish
        it, even after a power cut."""
        changes: dict[str, Any] = {"heartbeat": self._session.runtime.now()}
        if plan is not None:
            ledger = Ledger()
            base = self._session.read_version(plan.branch, plan.base_version, ledger)
            sync_actions(self._session, base, plan.actions, ledger)
            changes |= {
                "plan": msgspec.json.encode(plan).decode(),
                "operation": plan.lineage.operation,
                "branch": plan.branch,
                "base": plan.base_version,
                "incarnation": plan.base_incarnation,
            }
        intent = msgspec.structs.replace(intent, **changes)
        write_intent(self._session.metered(Ledger()), intent)
        return intent

    def end(self, intent: Intent) -> None:
        """Also deletes the files that it kept beside the graph. Cleanup removes what a crash
        leaves."""
        delete_intent(self._session.metered(Ledger()), intent.id)
        files = intent.details.get(FILES, "")
        if is_folder(files):
            delete_below(self._session.root, self._session.objects, files)

    def resume(self, id: str) -> Commit:
        """Publishes what the intent had staged, unless that has been published already. The commit
        says whose work it was."""
        intent = self._read(id)
        if intent.plan is None or intent.branch is None:
            raise InvalidArgument(
                f"The {intent.kind} {id} had not staged everything when it stopped.",
                help=f"Run the job {intent.details[JOB]!r} again: it goes on from what is staged."
                if JOB in intent.details
                else "Run it again, and discard the intent.",
            )
        ledger = Ledger()
        done = self._find(intent, ledger)
        if done is None:
            base = self._base(intent, ledger)
            plan = _read_plan(intent, intent.plan, base)
            whose = f" of {intent.actor}" if intent.actor else ""
            words = f"resumed {intent.kind}{whose}"
            if plan.lineage.message:
                words += f": {plan.lineage.message}"
            lineage = msgspec.structs.replace(plan.lineage, actor=ACTOR, message=words)
            plan = msgspec.structs.replace(plan, lineage=lineage)
            done = self._publish(plan, intent, base, ledger)
        with after_commit("ending an intent"):  # resuming it again finds the commit that landed
            self.end(intent)
        return done

    def discard(self, id: str) -> Commit | None:
        """Gives up what the intent had staged, so cleanup deletes it. The log of its branch says
        so."""
        intent = self._read(id)
        ledger = Ledger()
        commit = None
        if intent.branch is not None:
            head = self._session.live_head(intent.branch, ledger)
            whose = f" of {intent.actor}" if intent.actor else ""
            plan = PublishPlan(
                branch=intent.branch,
                base_version=head.version,
                base_incarnation=head.incarnation,
                actions=(),
                lineage=Lineage(
                    kind=DISCARD,
                    operation=self._session.runtime.ulid(),
                    actor=ACTOR,
                    message=f"discarded {intent.kind}{whose} ({id})",
                ),
            )
            commit = self._publish(plan, intent, head, ledger)
        self.end(intent)
        return commit

    def _base(self, intent: Intent, ledger: Ledger) -> GraphVersion:
        """The version that the plan of an intent depends on."""
        assert intent.branch is not None
        assert intent.base is not None
        try:
            return self._session.read_version(intent.branch, intent.base, ledger)
        except Absent:
            raise Conflict(
                f"Version {intent.base} of {intent.branch!r}, on which the intent {intent.id} "
                "rests, is gone.",
                help="Run the operation again, and discard the intent.",
            ) from None

    def _publish(
        self, plan: PublishPlan, intent: Intent, base: GraphVersion, ledger: Ledger
    ) -> Commit:
        session = self._session
        work = _Resumed(session, plan, base, intent.created_at)
        published = publish(session, work, ledger, retry_for=session.settings.retry_for)
        assert published.version is not None
        return published.version.commit

    def _find(self, intent: Intent, ledger: Ledger) -> Commit | None:
        """The commit of the intent's operation, if it landed."""
        assert intent.branch is not None
        assert intent.base is not None
        head = self._session.head(intent.branch, ledger)
        for number in range(head.version, intent.base, -1):
            version = self._session.read_record(intent.branch, number, ledger)
            if version.commit.operation == intent.operation:
                return version.commit
        return None

    def _read(self, id: str) -> Intent:
        intent_key(id)
        if not self._writable:
            raise ReadOnly(f"The graph {self._session.root.uri} is open for reading only.")
        for known in list_intents(self._session.metered(Ledger())):
            if known.id == id:
                if known.intent is None:
                    raise Corrupt(
                        f"The intent {id} cannot be read: {known.problem}.",
                        help=f"Look at {known.key}; delete the file if it is of no use.",
                    )
                return known.intent
        raise IntentNotFound(f"There is no operation {id}: it has ended, or never was.")

    def _report(self, known: KnownIntent) -> IntentReport:
        now = self._session.runtime.now()
        intent = known.intent
        began = known.modified if intent is None else intent.created_at
        heard = known.modified if intent is None else intent.heartbeat
        silent = max(0.0, (now - heard) / 1e6)
        return IntentReport(
            id=known.id,
            kind=None if intent is None else intent.kind,
            actor=None if intent is None else intent.actor,
            branch=None if intent is None else intent.branch,
            age=max(0.0, (now - began) / 1e6),
            silent_for=silent,
            dead=silent > self._session.settings.grace,
            resumable=intent is not None and intent.plan is not None,
            problem=known.problem,
            job=None if intent is None else intent.details.get(JOB),
        )


def _read_plan(intent: Intent, text: str, base: GraphVersion) -> PublishPlan:
    try:
        held = lift_plan(
            msgspec.json.decode(text, type=dict[str, Any]),
            {key: pin.content for key, pin in base.pins.items()},
        )
        return _PLAN_DECODER.decode(msgspec.json.encode(held))
    except UNDECODABLE as error:
        raise Corrupt(f"The plan of the intent {intent.id} cannot be read: {error}.") from error


@dataclass
class _Resumed:
    """A plan of another process, as the publisher sees it: it is bound unchanged or not at all."""

    session: Session
    plan: PublishPlan
    base: GraphVersion
    since: int

    def replan(self, head: GraphVersion) -> None:
        raise Conflict(
            f"What was staged no longer fits the branch {head.branch!r}.",
            help="Run the operation again, and discard the intent.",
        )

    def stale(self, head: GraphVersion) -> bool:
        """Cleanup knows the intent, so only its announcements count, not the age of the files."""
        return bool(self.plan.actions) and self.since <= head.gc_cutoff
