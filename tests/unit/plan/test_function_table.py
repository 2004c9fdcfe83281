"""A function of the language is one row of the table and one entry in each engine."""

from __future__ import annotations

import pytest

from omnigraph.engine.query.spill import SPILLED
from omnigraph.lang.gq.check.functions import AGGREGATES, FUNCTIONS
from omnigraph.plan.values.aggregates import FOLDS
from omnigraph.plan.values.functions import KERNELS

FROM_THE_CLOCK = {"now"}
"""What it gives is bound once for a query, so that no engine has to compute it."""


def test_every_function_has_a_kernel_and_every_kernel_a_row() -> None:
    assert set(KERNELS) == set(FUNCTIONS) - FROM_THE_CLOCK


def test_every_aggregate_is_folded_in_memory_and_on_disk() -> None:
    assert set(FOLDS) == set(SPILLED) == set(AGGREGATES)


def test_every_aggregate_is_folded_on_spark() -> None:
    pytest.importorskip("pyspark")
    from omnigraph.spark.query.aggregates import FOLDS as ON_SPARK

    assert set(ON_SPARK) == set(AGGREGATES)


def test_what_nothing_gives_says_whether_the_result_may_be_null() -> None:
    never = {name for name, row in AGGREGATES.items() if not row.nullable}
    assert never == {"count", "collect"}
