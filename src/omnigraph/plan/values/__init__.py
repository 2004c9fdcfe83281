"""The values of expressions: pure functions over Arrow arrays, the same wherever they run."""

from __future__ import annotations

from omnigraph.plan.values.evaluate import Leaves, evaluate, evaluate_array, holds
from omnigraph.plan.values.kinds import arrow_kind, broadcast, cast, constant

__all__ = [
    "Leaves",
    "arrow_kind",
    "broadcast",
    "cast",
    "constant",
    "evaluate",
    "evaluate_array",
    "holds",
]
