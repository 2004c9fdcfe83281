"""Owns the choice of where a load runs: a pure function of what is known before the load starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SPARK_ROWS = 1_000_000
BYTES_A_ROW = 100
Engine = Literal["local", "spark"]


@dataclass(frozen=True)
class LoadFacts:
    """`rows` is the estimate: from Parquet footers, else the bytes by 100; None if nobody can
    tell, as of a stream. `spark_source`: a DataFrame, table or stream of Spark. `master` is the
    configured Spark master, "" if there is none."""

    rows: int | None = None
    spark_source: bool = False
    session: bool = False
    master: str = ""


@dataclass(frozen=True)
class Choice:
    engine: Engine
    reason: str


def resolve_engine(
    asked: str, facts: LoadFacts, *, spark_rows: int = SPARK_ROWS, registered: bool = True
) -> Choice:
    """`registered`: whether the spark executor is installed; without it `auto` stays here."""
    if asked == "local":
        return Choice("local", "asked for")
    if asked == "spark":
        return Choice("spark", "asked for")
    reason = _why_spark(facts, spark_rows)
    if reason is None:
        size = "of unknown size" if facts.rows is None else f"about {facts.rows:,} rows"
        return Choice("local", f"{size}, not above {spark_rows:,}")
    if not registered and not facts.spark_source:
        return Choice("local", f"{reason}, but the spark engine is not installed")
    return Choice("spark", reason)


def _why_spark(facts: LoadFacts, spark_rows: int) -> str | None:
    if facts.spark_source:
        return "the source is Spark's"
    if facts.session:
        return "a Spark session is running"
    if facts.master and not facts.master.startswith("local"):
        return f"the Spark master {facts.master} is configured"
    if facts.rows is not None and facts.rows > spark_rows:
        return f"about {facts.rows:,} rows, above {spark_rows:,}"
    return None
