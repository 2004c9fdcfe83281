"""Owns the table of all operations of the world, and what is in it by other means."""

from __future__ import annotations

from tests.sim.world import asking, lineage, rounds, schemas, upkeep, writing
from tests.sim.world.steps import OPERATIONS

MODULES = (asking, lineage, rounds, schemas, upkeep, writing)

COVERED_BY = {
    "Graph.close": "every world closes its handles",
    "Graph.io": "what requests cost is proven in tests/cost",
    "Snapshot.io": "what requests cost is proven in tests/cost",
    "Transaction.io": "what requests cost is proven in tests/cost",
    "Graph.spark": "needs Spark: tests/spark",
    "Graph.stream_writer": "needs Spark: tests/spark",
    "Branch.stream_writer": "needs Spark: tests/spark",
}
"""Public members that no operation calls, and where they are tried instead."""

__all__ = ["COVERED_BY", "MODULES", "OPERATIONS"]
