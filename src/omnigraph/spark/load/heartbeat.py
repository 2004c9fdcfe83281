"""Owns the intent of a load while it runs: it is written before anything is staged, kept alive, and
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
"""The detail with the name of the branch that the load creates before it publishes."""


class JobHeartbeat:
    """Cleanup spares everything staged under an intent for as long as the intent shows signs of
    life. A resumed job keeps the intent of its first run."""

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
        """Changes when staged files may be gone. It is part of the names of all journal entries
        about them."""
        return self._intent.details.get(_ROUND, "0")

    def renew(self) -> None:
        """Everything will be staged again, so only files from now on count."""
        following = str(int(self.round) + 1)
        self._change({_ROUND: following}, created_at=self._session.runtime.now(), plan=None)

    def creates(self, branch: str) -> None:
        """Records that the load creates a branch: if it dies now, the next run recognises the
        branch as its own."""
        self._change({CREATES: branch})

    def _change(self, details: dict[str, str], **changes: Any) -> None:
        with self._lock:
            held = {**self._intent.details, **details}
            self._intent = msgspec.structs.replace(self._intent, details=held, **changes)
            write_intent(self._session.metered(Ledger()), self._intent)

    @staticmethod
    def forget(session: Session, intent: Intent) -> None:
        """Removes the intent of an earlier run of a job that turns out to be done."""
        with contextlib.suppress(OmnigraphError):
            Recovery(session, writable=True).end(intent)

    def staged(self, plan: PublishPlan) -> None:
        """Everything is staged: from here on the load can be resumed."""
        with self._lock:
            self._intent = self._recovery.beat(self._intent, plan=plan)

    def require_held(self) -> None:
        """Raises if somebody else has taken over the job."""
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
            with contextlib.suppress(OmnigraphError):  # cleanup removes it once it is dead
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
                continue  # the next beat may succeed
