"""OmniGraph on Spark: sessions, pipelines, tables as DataFrames.

    spark = omnigraph.spark.session()
    g.load("edges.parquet", type="Knows", engine="spark")
    omnigraph.spark.Pipeline(g).source(people, type="Person").source(edges, type="Knows").run()

Spark itself is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.spark.extension import settings
from omnigraph.spark.session import session

if TYPE_CHECKING:
    from omnigraph.spark.frames import as_frame
    from omnigraph.spark.pipeline import Pipeline

__all__ = ["Pipeline", "as_frame", "session", "settings"]


def __getattr__(name: str) -> Any:
    if name == "Pipeline":
        from omnigraph.spark.pipeline import Pipeline

        return Pipeline
    if name == "as_frame":
        from omnigraph.spark.frames import as_frame

        return as_frame
    raise AttributeError(f"omnigraph.spark has no {name!r}")
