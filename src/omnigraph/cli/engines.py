"""Owns the options that say where work runs: in this process, or on Spark with its settings."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Annotated, Literal

from cyclopts import Parameter

from omnigraph.cli.output import Output
from omnigraph.cli.progress import waiting
from omnigraph.errors import InvalidArgument

Name = Literal["auto", "local", "spark"]
Engine = Annotated[Name, Parameter(help="where it runs")]
Master = Annotated[
    str | None, Parameter(help="the Spark to run on: local[4], spark://host:7077, sc://host")
]
Conf = Annotated[
    tuple[str, ...],
    Parameter(negative=(), help="a setting of Spark, such as spark.driver.memory=8g; repeat"),
]


@contextlib.contextmanager
def started(
    out: Output, engine: Name, master: str | None, conf: tuple[str, ...], *, brief: bool = False
) -> Iterator[Name]:
    """The engine to use. Spark is started if necessary, and stopped after the command if the
    command started it. `brief` means that there is little work, so Spark should start fast rather
    than run fast."""
    settings = _settings(engine, master, conf)
    if master or settings:
        engine = "spark"
    if engine == "local":
        yield engine
        return
    from omnigraph.engine.executors import Startable, find_executor, is_running

    before = is_running("spark")
    with _quiet_interrupts():
        try:
            if engine == "spark":
                with contextlib.nullcontext() if before else waiting(out, "starting Spark"):
                    spark: Startable = find_executor("spark")
                    spark.start(master, settings, brief=brief)
            yield engine
        finally:
            if not before and is_running("spark"):
                running: Startable = find_executor("spark")
                running.stop()


@contextlib.contextmanager
def _quiet_interrupts() -> Iterator[None]:
    """Keeps Ctrl-C to one line here too. Without a handler of ours PySpark installs its own, and
    py4j logs a stack trace for an interrupted call."""
    silence = logging.NullHandler()
    logging.getLogger().addHandler(silence)
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, _interrupt) if is_main else None
    try:
        yield
    finally:
        logging.getLogger().removeHandler(silence)
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def here_or_spark(engine: Name) -> Literal["local", "spark"]:
    """For commands that cannot choose an engine by themselves."""
    return "spark" if engine == "spark" else "local"


def _settings(engine: Name, master: str | None, conf: tuple[str, ...]) -> dict[str, str]:
    if engine == "local" and (master or conf):
        given = "--master" if master else "--conf"
        raise InvalidArgument(
            f"{given} is for Spark, and --engine local does not use it.",
            help=f"Leave {given} out, or say --engine spark.",
        )
    settings: dict[str, str] = {}
    for pair in conf:
        name, equals, value = pair.partition("=")
        if not equals or not name.startswith("spark."):
            raise InvalidArgument(
                f"--conf {pair!r} is not a setting of Spark.",
                help="Write --conf spark.driver.memory=8g.",
            )
        settings[name] = value
    return settings
