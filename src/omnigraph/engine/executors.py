"""Owns the registry of engines that run bulk work elsewhere. They are found by entry points."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Protocol

from omnigraph.errors import EngineMissing, InvalidArgument

GROUP = "omnigraph.engines"


class Startable(Protocol):
    """An engine that can be started and stopped. Its module registers a function that makes it,
    under the group `omnigraph.engines`. That function raises ImportError if a package that the
    engine needs is not installed. `engine/executor_protocol.py` says what else an engine does."""

    def active(self) -> bool:
        """Whether a session of the engine is running in this process."""

    def lacks(self) -> str | None:
        """What this machine lacks for the engine to start, None if nothing."""

    def start(
        self, master: str | None, settings: Mapping[str, str], *, brief: bool = False
    ) -> None:
        """Starts a session on a master with settings, or takes the one that is running. `brief`
        means that there is little work: the session should start fast rather than run fast."""

    def stop(self) -> None:
        """Ends the session that is running."""

    def is_cluster(self) -> bool:
        """Whether it runs, or is configured to run, on more than this machine."""


_RESTS_ON = {"spark": "pyspark"}


def registered(name: str) -> bool:
    """Whether this engine exists and the package that it needs is installed. Nothing is
    imported."""

    from importlib.metadata import entry_points

    if find_spec(_RESTS_ON.get(name, "omnigraph")) is None:
        return False
    return any(point.name == name for point in entry_points(group=GROUP))


def is_here(engine: str) -> bool:
    """Whether work runs in this process, for calls that have no "auto"."""
    if engine not in ("local", "spark"):
        raise InvalidArgument(f"`engine` is one of 'local', 'spark', not {engine!r}.")
    return engine == "local"


def is_running(name: str) -> bool:
    """Whether a session of the engine is running. Nothing is imported to find out."""
    if _RESTS_ON.get(name, "omnigraph") not in sys.modules or not registered(name):
        return False
    executor: Startable = find_executor(name)
    return executor.active()


def find_executor(name: str) -> Any:
    """The engine of this name. The caller annotates what it asks of the engine: a protocol that
    stands beside the operation, so that the registry need not know any operation."""

    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        if point.name != name:
            continue
        try:
            make: Callable[[], object] = point.load()
            return make()
        except ImportError as error:
            raise EngineMissing(
                f"The engine {name!r} cannot start: {error}.",
                help=f"Install what it needs: pip install 'omnigraph[{name}]', or use "
                "engine='local'.",
            ) from error
    raise EngineMissing(
        f"There is no engine {name!r} in this installation.",
        help=f"Install it: pip install 'omnigraph[{name}]', or use engine='local'.",
    )


def configured_master() -> str:
    """The Spark master that the environment names, "" if there is none."""
    return os.environ.get("MASTER", "") or os.environ.get("SPARK_MASTER", "")
