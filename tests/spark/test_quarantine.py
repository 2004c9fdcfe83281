"""Rejected rows: many of them are never in the memory of the driver at once."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import pytest

from omnigraph.engine.load.rejected import RejectedRows
from tests.bench.processes import Worker
from tests.load.world import person, write_lines
from tests.spark.twins import Twins, told


@pytest.mark.slow
def test_many_rows_put_aside_are_those_of_one_process(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from functools import partial

    from omnigraph.spark.load.shape import plan_parts

    monkeypatch.setattr(
        "omnigraph.spark.load.reading.plan_parts", partial(plan_parts, range_bytes=99_999)
    )
    twins = Twins.make(tmp_path)
    entries: list[Any] = []
    for number in range(2500):
        entries.append(person(f"p{number}", age=-1))  # refused where it is read
        entries.append(person(f"q{number % 7}"))  # refused by a join
    path = write_lines(tmp_path / "all.jsonl", entries)
    one, other = twins.load(path, on_error="quarantine")
    assert len(other.rejected) == 2500 + 2500 - 7
    assert isinstance(other.rejected, RejectedRows)
    assert other.rejected[-1] == list(other.rejected)[-1]
    assert other.rejected[3:5] == tuple(other.rejected)[3:5]
    with pytest.raises(IndexError):
        other.rejected[5000]
    columns = ["source", "line", "rule", "reason"]
    order = [("line", "ascending")]
    assert (
        one.rejected_rows().sort_by(order).select(columns).to_pylist()
        == other.rejected_rows().sort_by(order).select(columns).to_pylist()
    )
    assert told(one.rejected) == told(other.rejected)


MILLION = 1_000_000


@pytest.mark.slow
def test_a_million_bad_rows_do_not_grow_the_driver(tmp_path: Path) -> None:
    """Of each row the driver keeps where it stood, and nothing of what it was."""
    told = {}
    for count in (10_000, MILLION):
        arguments = {"directory": str(tmp_path / str(count)), "count": count}
        with Worker("tests.spark.test_quarantine:refuse_many", arguments) as worker:
            worker.wait_ready()
            worker.go()
            outcome = worker.outcome(within=1800)
        assert outcome.error is None, outcome.traceback
        told[count] = outcome.result
        assert outcome.result["rejected"] == count - 1  # the first of those that are the same
        assert outcome.result["loaded"] == 3
    grown = told[MILLION]["peak"] - told[10_000]["peak"]
    # A rejected row as an object of Python takes more than 600 bytes.
    assert grown < 200 * MILLION, told


def refuse_many(directory: str, count: int) -> dict[str, int]:
    """Half of them are refused by a rule of their own, half by a join."""
    import sys

    import omnigraph.spark
    from tests.load.world import new_graph
    from tests.spark.conftest import FOR_SMALL_DATA, entry_point

    place = Path(directory)
    place.mkdir()
    sys.path.append(str(entry_point(place)))
    spark = omnigraph.spark.session("local[2,3]", **FOR_SMALL_DATA)
    g = new_graph(place)
    bad = spark.range(0, count, 1, 4).selectExpr(
        "if(id % 2 = 1, concat('p', id), 'same') as name", "if(id % 2 = 1, 200, 2) as age"
    )
    good = spark.sql("select 'x' as name, 1 as age union all select 'y', 2")
    result = g.load({"Person": bad.union(good)}, on_error="quarantine")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"rejected": len(result.rejected), "loaded": result.rows, "peak": peak}
