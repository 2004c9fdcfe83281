"""Owns how the rows of a merge on Spark become whole: one join locates them, then each executor
completes its pieces."""

from __future__ import annotations

from functools import partial

import numpy as np

from omnigraph.spark.load.frames import Wanted
from omnigraph.spark.load.stage import Completed, complete_new, complete_pieces
from omnigraph.spark.load.state import SparkState
from omnigraph.spark.tasks import ANSWERS, collect_answers, run_tasks


def complete_types(state: SparkState) -> None:
    """Whole rows of a merge, each with the row that it replaces."""
    for key, held in list(state.types.items()):
        kind, stored = held.kind, None
        if not held.generated:
            stored = state.stored(kind, Wanted(("id",)))
        job = state.job(kind, held.given)
        if stored is None:
            answers = run_tasks(
                state.spark, partial(complete_new, job), range(len(held.given)), Completed
            )
        else:
            ids = state.arriving(kind, Wanted(("id",)))
            stored = state.small(stored, state.snapshot.view(kind).table.rows)
            located = ids.join(stored, "id", "left").selectExpr(
                "part", "place", "address as origin"
            )
            grouped = located.groupBy("part").applyInArrow(complete_pieces(job), ANSWERS)
            answers = collect_answers(grouped, Completed)
        for _, answer in answers:
            state.rejects += answer.rejects
            state.files += answer.aside
            state.drop(kind, np.array(answer.dropped, dtype=np.int64))
        whole = tuple(answer.piece for _, answer in answers if answer.piece is not None)
        state.types[key] = state.types[key].completed(whole)
