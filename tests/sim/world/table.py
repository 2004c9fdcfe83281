"""Owns the table of all operations of the world, and what is in it by other means."""

from __future__ import annotations

from tests.sim.world import (
    algorithms,
    asking,
    batches,
    branches,
    histories,
    machine,
    merges,
    origins,
    passing,
    power,
    rounds,
    schemas,
    slots,
    storing,
    streams,
    upkeep,
    writing,
)
from tests.sim.world.steps import OPERATIONS

MODULES = (
    algorithms,
    asking,
    batches,
    branches,
    histories,
    machine,
    merges,
    origins,
    passing,
    power,
    rounds,
    schemas,
    slots,
    storing,
    streams,
    upkeep,
    writing,
)
"""Importing them fills the table."""

COVERED_BY = {
    "Graph.acting": "asks somebody else, who changes no answer of a world: tests/policy",
    "Graph.close": "every world closes its handles",
    "Graph.jobs": "is no part of a version: tests/processes/test_graph_jobs.py",
    "Graph.may": "asks for a caller, and a world has none: tests/policy",
    "Graph.spark": "needs Spark: tests/spark",
    "Graph.stream_writer": "the operation batch does what it does; tests/spark calls it",
    "Snapshot.asked": "is how a snapshot was reached: tests/policy",
    "Snapshot.sight": "is what a caller may see, and a world has no callers: tests/policy",
    "Branch.stream_writer": "the operation batch does what it does; tests/spark calls it",
}
"""Public members that no operation calls, and where they are tried instead."""

__all__ = ["COVERED_BY", "MODULES", "OPERATIONS"]
