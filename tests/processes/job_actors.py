"""What processes of the tests of jobs do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import omnigraph
from omnigraph.engine.upkeep.jobs import JobContext
from tests.bench.worker import pause


def insert(root: str, job_id: str, point: str) -> dict[str, Any]:
    """Runs a job that makes one commit, and stops before or after it."""
    with omnigraph.open(root) as g:

        def work(context: JobContext) -> Mapping[str, Any]:
            context.progress(1, 2, "about to write")
            if point == "before":
                pause("before")
            done = g.mutate('insert Note { text: "x" }', idempotency_key=context.key)
            if point == "after":
                pause("after")
            context.progress(2, 2)
            return {"commit": done.commit_id}

        return dict(g.jobs.run(job_id, work).to_dict())


def wait_for_cancel(root: str, job_id: str) -> dict[str, Any]:
    """Works until somebody asks it to stop."""
    with omnigraph.open(root) as g:

        def work(context: JobContext) -> Mapping[str, Any]:
            pause("working")
            for step in range(100_000):
                context.progress(step)
                g._session.runtime.sleep(0.01)
            return {}

        return dict(g.jobs.run(job_id, work).to_dict())
