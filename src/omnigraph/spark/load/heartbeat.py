"""Owns the intent of a load while it runs: written before anything is staged, kept alive, and
completed with the plan, so that another process can publish what was staged."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import msgspec

from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.recovery import JOB, Recovery
from omnigraph.errors import JobRunning, OmnigraphError
from omnigraph.model.version import ForkPoint, GraphVersion
from omnigraph.plan.publish import PublishPlan
from omnigraph.runtime import reach
from omnigraph.spark.load.job import BEAT, Job
from omnigraph.store.intents import FILES, Intent, write_intent
from omnigraph.telemetry import Ledger

_OFTEN = 60.0
_ROUND = "round"
CREATES = "creates"
"""The detail that names the branch which the load creates before it publishes."""


class JobHeartbeat:
    """Cleanup spares what is staged under an intent for as long as it is heard of. The intent of a
    job that goes on is the one that its first run wrote."""

    def __init__(
        self,
        session: Session,
        base: GraphVersion,
        *,
        actor: str | None,
        branch: str | None,
        job: Job | None,
        files: str,
    ) -> None:
        self._session = session
        self._job = job
        self._recovery = Recovery(session, writable=True)
        details = {"engine": "spark", FILES: files}
        if job is not None:
            details[JOB] = job.name
        if job is not None and job.intent is not None:
            self._intent = self._recovery.beat(job.intent)
        else:
            pin = ForkPoint(branch=base.branch, incarnation=base.incarnation, version=base.version)
            self._intent = self._recovery.begin(
                "load",
                actor=actor,
                branch=branch,
                base=base,
                details=details,
                pins=(pin,),
                id=None if job is None else job.attempt.intent,
            )
        reach("intent written")
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._lost: JobRunning | None = None
        often = _OFTEN if job is None else BEAT
        pause = min(often, session.settings.grace / 8)
        self._thread = threading.Thread(target=self._beat, args=(pause,), daemon=True)
        self._thread.start()

    @property
    def since(self) -> int:
        return self._intent.created_at

    @property
    def round(self) -> str:
        """Changes when what was staged may be gone; part of every name in the journal of it."""
        return self._intent.details.get(_ROUND, "0")

    def renew(self) -> None:
        """Everything will be staged again: only what comes from now on counts."""
        following = str(int(self.round) + 1)
        self._change({_ROUND: following}, created_at=self._session.runtime.now(), plan=None)

    def creates(self, branch: str) -> None:
        """If it dies now, the next run finds its own branch."""
        self._change({CREATES: branch})

    def _change(self, details: dict[str, str], **changes: Any) -> None:
        with self._lock:
            held = {**self._intent.details, **details}
            self._intent = msgspec.structs.replace(self._intent, details=held, **changes)
            write_intent(self._session.metered(Ledger()), self._intent)

    @staticmethod
    def forget(session: Session, intent: Intent) -> None:
        """Forgets the intent of an earlier run of a job that turns out to be done."""
        with contextlib.suppress(OmnigraphError):
            Recovery(session, writable=True).end(intent)

    def staged(self, plan: PublishPlan) -> None:
        """All of it: from here on it can be resumed."""
        with self._lock:
            self._intent = self._recovery.beat(self._intent, plan=plan)

    def require_held(self) -> None:
        """Raises if the job is somebody else's by now."""
        if self._lost is not None:
            raise self._lost
        if self._job is not None:
            self._job.require_held()

    def end(self, *, keep: bool = False) -> None:
        """`keep`: nobody knows whether the commit landed, so a process that resumes it has to
        look; or it is a job that will be run again."""
        self._ended.set()
        self._thread.join()
        if not keep:
            with contextlib.suppress(OmnigraphError):  # cleanup takes it when it is dead
                self._recovery.end(self._intent)

    def _beat(self, pause: float) -> None:
        while not self._ended.wait(pause):
            try:
                if self._job is not None:
                    self._job.require_held()
                with self._lock:
                    self._intent = self._recovery.beat(self._intent)
            except JobRunning as error:
                self._lost = error
                return
            except OmnigraphError:
                continue  # the next beat may come through
