"""Owns the sign of life of an operation in this process. Once it has lasted a minute, an intent is
written and kept up to date until the operation ends.

Cleanup in another process then spares everything that was staged since the operation began, however
long it takes. A short operation writes nothing. Cleanup itself stages nothing and needs no
heartbeat.
"""

from __future__ import annotations

import contextlib
import threading

import msgspec

from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.recovery import Recovery
from omnigraph.errors import OmnigraphError
from omnigraph.model.version import ForkPoint, GraphVersion
from omnigraph.plan.publish import PublishPlan
from omnigraph.store.intents import LOCAL, Intent, write_intent
from omnigraph.telemetry import Ledger

_OFTEN = 60.0


class Heartbeat:
    """A block of work. `since` is when the first file that it needs was staged. `base` is the
    version that it depends on, which is kept in place for the process that may publish the work."""

    def __init__(
        self, session: Session, kind: str, *, branch: str | None, actor: str | None = None
    ) -> None:
        self._session = session
        self._kind = kind
        self._branch = branch
        self._actor = actor
        self._recovery = Recovery(session, writable=True)
        self._pause = min(_OFTEN, session.settings.grace / 8)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._intent: Intent | None = None
        self._thread: threading.Thread | None = None
        self.since = session.runtime.now()
        self.base: GraphVersion | None = None

    def __enter__(self) -> Heartbeat:
        self._thread = threading.Thread(target=self._watch, name="omnigraph-intent", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Whatever happened, cleanup deletes what remains, as it does for short operations."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._intent is not None:
            with contextlib.suppress(OmnigraphError):  # cleanup removes it once it is dead
                self._recovery.end(self._intent)

    def covers(self, head: GraphVersion) -> bool:
        """Whether every cleanup that the head knows of knew what was staged. If so, only the
        announcements of cleanup count, not the age of the files."""
        with self._lock:
            return self._intent is not None and self.since > head.gc_cutoff

    def renew(self) -> None:
        """Everything will be staged again, so only files from now on count."""
        with self._lock:
            self.since = self._session.runtime.now()
            if self._intent is not None:
                self._intent = msgspec.structs.replace(self._intent, created_at=self.since)
                write_intent(self._session.metered(Ledger()), self._intent)

    def staged(self, plan: PublishPlan) -> None:
        """Everything is staged: if the process dies now, anybody can publish it."""
        with self._lock:
            if self._intent is not None:
                self._intent = self._recovery.beat(self._intent, plan=plan)

    def beat(self) -> None:
        """Shows that the operation is alive. The first time this writes the intent."""
        with self._lock:
            if self._intent is not None:
                self._intent = self._recovery.beat(self._intent)
                return
            base = self.base
            self._intent = self._recovery.begin(
                self._kind,
                actor=self._actor,
                branch=self._branch,
                base=base,
                pins=()
                if base is None
                else (
                    ForkPoint(
                        branch=base.branch, incarnation=base.incarnation, version=base.version
                    ),
                ),
                details={"engine": LOCAL},
                created_at=self.since,
            )

    def _watch(self) -> None:
        while not self._ended.wait(self._pause):
            with contextlib.suppress(OmnigraphError):  # the next beat may succeed
                self.beat()
