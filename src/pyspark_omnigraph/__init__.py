"""Found by Spark under its name: `spark.read.format("omnigraph")` needs no registration."""

from omnigraph.spark.source import OmnigraphSource as DefaultSource

__all__ = ["DefaultSource"]
