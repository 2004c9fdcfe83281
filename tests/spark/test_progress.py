"""Progress: every stage tells how far it is, and whoever listens does not disturb others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph.engine.load.progress import LoadProgress
from tests.load.world import new_graph


def test_every_stage_says_how_far_it_is(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.spark.load.progress.OFTEN", 0.01)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "mine")
    told: list[LoadProgress] = []
    g = new_graph(tmp_path)
    frame = spark.range(0, 2000, 1, 4).selectExpr("concat('p', id) as name")
    g.load(frame, type="Person", progress=told.append)
    stages = list(dict.fromkeys(progress.stage for progress in told))
    assert stages == ["reading", "checking", "writing", "indexing", "publishing"]
    asked = [progress for progress in told if progress.tasks]
    assert {progress.stage for progress in asked} >= {"reading", "writing"}
    assert all(0 <= progress.tasks_done <= progress.tasks for progress in asked)
    assert all(progress.rows <= 2000 for progress in told)
    assert told[-1].rows == 2000
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") == "mine"
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert LoadProgress("writing", 500, 0, None, elapsed=2.0).rate == 250


def test_what_a_listener_raises_ends_the_load(spark: Any, tmp_path: Path) -> None:
    g = new_graph(tmp_path)

    def tired(progress: LoadProgress) -> None:
        if progress.stage == "checking":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        g.load(spark.sql("select 'a' as name"), type="Person", progress=tired)
    assert g.snapshot().count("Person") == 0
    assert g.recovery.list() == []
