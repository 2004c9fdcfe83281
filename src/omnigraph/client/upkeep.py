"""Owns maintenance of a graph on a server: jobs that are waited for, and their reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from omnigraph.arguments import checked_methods
from omnigraph.client.remote_jobs import await_job, begin_job, job_of
from omnigraph.client.served_graph import ServedGraph
from omnigraph.client.told import commit_of
from omnigraph.client.understanding import understanding
from omnigraph.engine.upkeep.cleanup_report import Cleaned, Removal
from omnigraph.engine.upkeep.optimize_report import OnProgress, Optimized, Progress, TypeReport
from omnigraph.engine.upkeep.recovery import IntentReport
from omnigraph.engine.upkeep.verify_report import Finding, Verification
from omnigraph.model.version import Commit
from omnigraph.telemetry import Ledger


def run_job(
    served: ServedGraph,
    kind: str,
    arguments: Mapping[str, Any],
    progress: OnProgress | None = None,
) -> dict[str, Any]:
    """What a job has to tell of its end."""

    def tell(job: Mapping[str, Any]) -> None:
        if progress is not None and job.get("total"):
            progress(_progress_of(job))

    given = {name: value for name, value in arguments.items() if value is not None}
    begun = job_of(begin_job(served, kind, given))
    ended = await_job(served, begun.id, tell)
    with understanding():
        return dict(ended["result"])


@understanding()
def _progress_of(job: Mapping[str, Any]) -> Progress:
    name, _, doing = str(job["doing"]).partition(": ")
    return Progress(int(job["done"]), int(job["total"]), name, doing)


@understanding()
def optimized_of(served: ServedGraph, told: Mapping[str, Any]) -> Optimized:
    made = told["commit"]
    return Optimized(
        None if made is None else commit_of(served.get(f"/commits/{made}")),
        {name: msgspec.convert(one, TypeReport) for name, one in told["types"].items()},
        told["dry_run"],
        told["gave_way"],
        Ledger(),
        told["folded"],
        told["repeated"],
    )


@understanding()
def cleaned_of(told: Mapping[str, Any]) -> Cleaned:
    removed = [msgspec.convert(one, Removal) for one in told["removed"]]
    floors = msgspec.convert(told["floors"], dict[str, int])
    spared = msgspec.convert(told["spared"], list[str])
    return Cleaned(bool(told["dry_run"]), removed, floors, spared)


@understanding()
def verification_of(told: Mapping[str, Any]) -> Verification:
    findings = [msgspec.convert(one, Finding) for one in told["findings"]]
    return Verification(
        told["deep"], findings, Counter(msgspec.convert(told["looked_at"], dict[str, int]))
    )


@checked_methods
class RemoteRecovery:
    """What is left of operations that died, on a server."""

    def __init__(self, served: ServedGraph) -> None:
        self._served = served

    @understanding()
    def list(self) -> list[IntentReport]:
        """Oldest first."""
        told = self._served.get("/recovery")
        return [msgspec.convert(one, IntentReport) for one in told["items"]]

    @understanding()
    def resume(self, id: str) -> Commit:
        """Publishes what the operation had staged, unless that has been published already."""
        told = run_job(self._served, "resume", {"intent": id})
        return commit_of(self._served.get(f"/commits/{told['commit']}"))

    @understanding()
    def discard(self, id: str) -> Commit | None:
        """Gives up what the operation had staged."""
        told = run_job(self._served, "discard", {"intent": id})
        if told["commit"] is None:
            return None
        return commit_of(self._served.get(f"/commits/{told['commit']}"))
