"""Owns the Spark extension that comes with this package: where it is and what it is called.

It is written in Scala (`jvm/`) and lets Spark take whole batches of the needed columns from the
data source. Without it everything works, but scans are slower.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

JAR = Path(__file__).with_name("columnar.jar")
NAME = "org.apache.spark.sql.omnigraph.Extension"
_VERSION = "4.3."
"""It uses internals of Spark, so it is built for one version."""


def settings() -> dict[str, str]:
    """Settings with which Spark reads graphs in batches, for a session of your own or a Spark
    Connect server. None if this package was installed without the extension, or Spark has another
    version."""
    return extended({})


def extended(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings with our extension added to those that they name. Spark uses only one value of
    each setting, so the values in its defaults file are included too."""
    from pyspark import __version__

    if not JAR.is_file() or not __version__.startswith(_VERSION):
        return dict(conf)
    more = {"spark.jars": str(JAR), "spark.sql.extensions": NAME}
    return {**conf, **{name: _with(conf.get(name), value) for name, value in more.items()}}


def _with(given: str | None, value: str) -> str:
    known = [one.strip() for one in (given or "").split(",") if one.strip()]
    return ",".join(known if value in known else [*known, value])
