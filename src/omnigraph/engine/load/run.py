"""Owns the start of a load: it checks the arguments and chooses the engine."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from omnigraph.engine.executors import (
    Startable,
    configured_master,
    find_executor,
    is_running,
    registered,
)
from omnigraph.engine.load.local import LocalEngine
from omnigraph.engine.load.operation import Load
from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.load.repeated import repeated_load
from omnigraph.engine.load.result import LoadResult
from omnigraph.engine.load.sources import InputSource, estimate_rows, find_sources, source_names
from omnigraph.engine.load.spool import temporary_spool
from omnigraph.engine.session import Session
from omnigraph.errors import InvalidArgument
from omnigraph.plan.load.engine_choice import Choice, LoadFacts, resolve_engine
from omnigraph.telemetry import Ledger

__all__ = ["LoadOptions", "load"]

_MODES = ("append", "merge", "overwrite")
_ON_ERROR = ("abort", "quarantine")
_ENGINES = ("auto", "local", "spark")


class LoadExecutor(Protocol):
    """An engine that loads in the place of this process."""

    def load(
        self, session: Session, source: Any, *, reason: str, options: Mapping[str, Any]
    ) -> LoadResult:
        """The same load as in this process, with the fields of `LoadOptions` by name."""


def load(session: Session, source: Any, options: LoadOptions) -> LoadResult:
    _one_of("mode", options.mode, _MODES)
    _one_of("on_error", options.on_error, _ON_ERROR)
    _one_of("engine", options.engine, _ENGINES)
    if options.job is not None and not options.job.strip():
        raise InvalidArgument("A job needs a name.", help="Leave it out, or say which job it is.")
    options = replace(options, names=source_names(source))
    spark = registered("spark")
    owned = _is_of_spark(source)
    sources: list[InputSource] = []
    if options.engine != "spark" and not owned:
        if (done := repeated_load(session, options, Ledger())) is not None:
            return done
        sources = find_sources(source, options.type, options.mapping)
    # A program that has not used Spark does not wait for its import.
    running = spark and "pyspark" in sys.modules and options.engine == "auto"
    facts = LoadFacts(
        rows=estimate_rows(sources) if sources else None,
        spark_source=owned,
        session=running and is_running("spark"),
        master=configured_master(),
    )
    choice = resolve_engine(
        options.engine, facts, spark_rows=session.settings.spark_rows, registered=spark
    )
    if choice.engine == "spark" and options.engine == "auto" and not owned:
        executor: Startable = find_executor("spark")
        lacking = executor.lacks()
        if lacking is not None:  # Spark was not asked for, so nothing has to be installed
            choice = Choice("local", f"{choice.reason}, but {lacking}")
    if choice.engine == "spark":
        given: Mapping[str, Any] = {
            name: getattr(options, name) for name in LoadOptions.__dataclass_fields__
        }
        engine: LoadExecutor = find_executor("spark")
        return engine.load(session, source, reason=choice.reason, options=given)
    ledger = Ledger()
    with temporary_spool("load", session.settings) as spool:
        here = LocalEngine(session, sources, options, spool, ledger)
        return Load(session, options, here, ledger).run(choice.reason)


def _is_of_spark(source: Any) -> bool:
    """Whether the source is a DataFrame, or several DataFrames by type."""
    held = list(source.values()) if isinstance(source, Mapping) else [source]
    return any(type(value).__module__.startswith("pyspark.") for value in held)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        listed = ", ".join(repr(word) for word in allowed)
        raise InvalidArgument(f"`{name}` is one of {listed}, not {value!r}.")
