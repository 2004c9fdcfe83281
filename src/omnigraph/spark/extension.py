"""Owns the extension of Spark that comes with this package: where it is, and what names it.

It is written in Scala (`jvm/`), and lets Spark take whole batches from the data source, of the
columns that a query needs. Without it everything works; scans are slower."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

JAR = Path(__file__).with_name("columnar.jar")
NAME = "org.apache.spark.sql.omnigraph.Extension"
_VERSION = "4.3."
"""It reaches into the inside of Spark, so it is made for one version."""


def settings() -> dict[str, str]:
    """For a session of your own, or a Spark Connect server: the settings of Spark that let it read
    graphs in batches. None if this package was installed without the extension, or Spark has
    another version."""
    return extended({})


def extended(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings, with our extension after those that they name. What is set twice for Spark
    counts once, so they have to have what its file of defaults says too."""
    from pyspark import __version__

    if not JAR.is_file() or not __version__.startswith(_VERSION):
        return dict(conf)
    more = {"spark.jars": str(JAR), "spark.sql.extensions": NAME}
    return {**conf, **{name: _with(conf.get(name), value) for name, value in more.items()}}


def _with(given: str | None, value: str) -> str:
    known = [one.strip() for one in (given or "").split(",") if one.strip()]
    return ",".join(known if value in known else [*known, value])
