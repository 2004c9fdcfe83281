"""Owns the intent of a load while it runs: written before anything is staged, kept alive, and
completed with the plan, so that whoever finds it can publish what was staged."""

from __future__ import annotations

import contextlib
import threading

from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.recovery import Recovery
from omnigraph.errors import OmnigraphError
from omnigraph.model.version import GraphVersion
from omnigraph.plan.publish import PublishPlan

_OFTEN = 60.0


class Watch:
    """Cleanup spares what is staged under an intent for as long as it is heard of."""

    def __init__(
        self, session: Session, base: GraphVersion, *, actor: str | None, branch: str | None
    ) -> None:
        self._recovery = Recovery(session, writable=True)
        self._intent = self._recovery.begin(
            "load", actor=actor, branch=branch, base=base, details={"engine": "spark"}
        )
        self._lock = threading.Lock()
        self._ended = threading.Event()
        pause = min(_OFTEN, session.settings.grace / 8)
        self._thread = threading.Thread(target=self._beat, args=(pause,), daemon=True)
        self._thread.start()

    @property
    def since(self) -> int:
        return self._intent.created_at

    def staged(self, plan: PublishPlan) -> None:
        """All of it: from here on it can be resumed."""
        with self._lock:
            self._intent = self._recovery.beat(self._intent, plan=plan)

    def end(self, *, keep: bool = False) -> None:
        """`keep`: nobody knows whether the commit landed, so whoever resumes has to look."""
        self._ended.set()
        self._thread.join()
        if not keep:
            with contextlib.suppress(OmnigraphError):  # cleanup takes it when it is dead
                self._recovery.end(self._intent)

    def _beat(self, pause: float) -> None:
        while not self._ended.wait(pause):
            with self._lock, contextlib.suppress(OmnigraphError):
                self._intent = self._recovery.beat(self._intent)
