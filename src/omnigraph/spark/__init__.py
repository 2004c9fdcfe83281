"""OmniGraph on Spark: sessions, bulk loads, tables as DataFrames.

    spark = omnigraph.spark.session()
    g.load("edges.parquet", type="Knows", engine="spark")

Spark itself is not imported before it is used.
"""

from __future__ import annotations

from omnigraph.spark.session import session

__all__ = ["session"]
