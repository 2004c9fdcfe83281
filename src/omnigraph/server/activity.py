"""Owns what one server process does now: the requests that are under way, and how many were
answered."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from omnigraph.server.admission import Admission
from omnigraph.server.pools import Pools

WORKERS = "OMNIGRAPH_WORKERS"
"""In the environment of a worker: how many there are."""


class Activity:
    """Requests are held by what is known of them, which grows while they are answered."""

    def __init__(self) -> None:
        self.answered = 0
        self._began = time.monotonic()
        self._running: dict[int, tuple[float, Mapping[str, Any]]] = {}

    def begin(self, scope: Mapping[str, Any]) -> None:
        self._running[id(scope)] = time.monotonic(), scope

    def end(self, scope: Mapping[str, Any]) -> None:
        self._running.pop(id(scope), None)
        self.answered += 1

    def told(self, pools: Pools, admission: Admission, asking: Mapping[str, Any]) -> dict[str, Any]:
        """Without the request that asks. Longest first; no query and no value is told."""
        now = time.monotonic()
        running = sorted(self._running.values(), key=lambda one: one[0])
        return {
            "process": os.getpid(),
            "workers": int(os.environ.get(WORKERS, "1")),
            "up_for": round(now - self._began, 3),
            "answered": self.answered,
            "running": [
                _request(scope, now - began)
                for began, scope in running
                if scope.get("request_id") != asking.get("request_id")
            ],
            "pools": [
                {"name": one.name, "threads": one.threads, "busy": one.busy, "waiting": one.queued}
                for one in pools.all()
            ],
            "streams": admission.streams,
            "memory_reserved": admission.reserved,
        }


def _request(scope: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    caller = scope.get("caller")
    return {
        "request_id": scope.get("request_id"),
        "method": scope["method"],
        "route": getattr(scope.get("route"), "path", None),
        "graph": (scope.get("path_params") or {}).get("graph"),
        "actor": None if caller is None else caller.actor,
        "seconds": round(seconds, 3),
    }
