"""What a driver does on a cluster, in a process of its own: one process has one Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import omnigraph
import omnigraph.spark
from omnigraph.errors import InvalidArgument
from omnigraph.settings import Settings
from omnigraph.spark.session import SHARED
from tests.load.world import SCHEMA, new_graph
from tests.spark.conftest import entry_point
from tests.spark.test_streams import lines, put, run, texts


def use(master: str, root: str, source: str, place: str) -> dict[str, Any]:
    sys.path.append(str(entry_point(Path(place))))
    spark = omnigraph.spark.session(
        master,
        **{
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.sql.shuffle.partitions": 2,
            "spark.ui.enabled": False,
        },
    )
    told: dict[str, Any] = {}
    try:
        new_graph(Path(place)).load(source, engine="spark")
    except InvalidArgument as error:
        told["local root"] = error.message
    g = omnigraph.init(root, schema=SCHEMA, settings=Settings())
    result = g.load(source, on_error="quarantine")
    assert result.engine == "spark"
    told["counts"] = {name: counts.inserted for name, counts in result.counts.items()}
    told["rejected"] = sorted(reject.rule for reject in result.rejected)
    state = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    told["executors"] = len(state) - 1  # the driver is told too
    frame = spark.sql("select 'p1' as name, 99 as age union all select 'new', 1")
    merged = g.load(frame, type="Person", mode="merge", job="second")
    told["merged"] = {name: [c.inserted, c.updated] for name, c in merged.counts.items()}
    g.spark.tables(spark)
    counted = "select (select count(*) from Person), (select count(*) from Knows)"
    told["read"] = list(spark.sql(counted).collect()[0])
    told["plan"] = spark.sql(counted)._jdf.queryExecution().executedPlan().toString()
    reader = spark.read.format("omnigraph").option("type", "Person").option("columns", "name,age")
    told["where"] = [
        list(row) for row in reader.option("where", 'name = "p7"').load(root).collect()
    ]
    told |= _more(spark, g, root, Path(place))
    told["left"] = [one.to_dict() for one in g.recovery.list()] + [
        key for key in g._session.objects.list("") if key.startswith(("__jobs", "__spool"))
    ]
    told["verified"] = g.verify().ok
    spark.stop()
    return told


def _more(spark: Any, g: omnigraph.Graph, root: str, place: Path) -> dict[str, Any]:
    """Algorithms, streams, maintenance and export."""
    told: dict[str, Any] = {"algorithms": []}
    for name in ("degrees", "connected_components"):
        here = g.algorithm(name, edges="Knows", engine="local").to_arrow()
        there = g.algorithm(name, edges="Knows", engine="spark").to_arrow()
        told["algorithms"].append(here == there)
    put(place / "in", "a.json", "one", "two")
    run(lines(spark, place / "in"), root, place / "sink", type="Note", on="append")
    each = lines(spark, place / "in").writeStream.trigger(availableNow=True)
    each = each.foreachBatch(g.stream_writer("Note", mode="append", engine="spark"))
    each.option("checkpointLocation", str(place / "each")).start().awaitTermination()
    told["streamed"] = texts(g)
    changes = spark.readStream.format("omnigraph").option("type", "Note").load(root)
    memory = changes.writeStream.format("memory").queryName("seen").trigger(availableNow=True)
    memory.start().awaitTermination()
    told["seen"] = sorted(row.text for row in spark.sql("select text from seen").collect())
    optimized = g.optimize(types=["Person", "Note"], engine="spark")
    told["optimized"] = {name: list(t.fragments) for name, t in optimized.types.items()}
    try:
        g.export(to=place / "out", types=["Person"], engine="spark")
    except InvalidArgument as error:
        told["export"] = error.message
    spark.conf.set(SHARED, "true")  # they are processes of this machine
    done = g.export(to=place / "out", types=["Person"], engine="spark", format="csv")
    told["exported"] = done.counts
    return told
