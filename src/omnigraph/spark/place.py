"""Owns where a load takes place: which executors can reach which graph, what they must have, and
where rows wait between stages."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from omnigraph.engine.session import Session
from omnigraph.errors import InvalidArgument
from omnigraph.spark.pieces import Spool
from omnigraph.spark.session import SHARED, is_local, master_of
from omnigraph.spark.tasks import run_tasks
from omnigraph.store.jobs import SPOOL
from omnigraph.store.roots import Root

_TEMPORARY = "omnigraph-spark-"


class Probed(msgspec.Struct, frozen=True):
    """An executor that has what it needs."""

    lance: str


def is_remote(spark: Any) -> bool:
    """Whether executors may be elsewhere than on this machine."""
    return type(spark).__module__.startswith("pyspark.sql.connect") or not is_local(
        master_of(spark)
    )


def require_reachable(spark: Any, root: Root) -> None:
    if root.directory is None or not is_remote(spark):
        return
    if str(spark.conf.get(SHARED, "false")).lower() != "true":
        raise InvalidArgument(
            f"The graph {root.uri} is a directory of this machine, and the executors of "
            f"{master_of(spark) or 'Spark Connect'} may be on others.",
            help=f"If they all see this directory, say so: {SHARED}=true. Else use a root on an "
            "object store, or a local master.",
        )


def require_executors(spark: Any) -> None:
    """Says what executors elsewhere lack before anything is read."""
    if is_remote(spark):
        run_tasks(spark, _probe, [0], Probed)


def _probe(_: int) -> Iterator[Probed]:
    from importlib.metadata import version

    import omnigraph  # noqa: F401 - the code of the tasks themselves

    yield Probed(version("pylance"))  # not there: a ModuleNotFoundError, as importing it


@contextlib.contextmanager
def passing_spool(session: Session, operation: str, *, remote: bool) -> Iterator[Spool]:
    """Beside the graph, where cleanup finds what a crash leaves; in the temporary directory if the
    graph is far away and the executors are not."""
    if remote or session.root.directory is not None:
        spool = Spool(session.root, f"{SPOOL}{operation}", session.settings)
        try:
            yield spool
        finally:
            spool.remove()
        return
    _sweep_temporary()
    directory = Path(tempfile.mkdtemp(prefix=f"{_TEMPORARY}{os.getpid()}-"))
    try:
        yield Spool(Root(str(directory), directory), "pieces", session.settings)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _sweep_temporary() -> None:
    """What drivers that were killed have left."""
    for found in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*-*"):
        owner = found.name.removeprefix(_TEMPORARY).split("-", 1)[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists() and Path("/proc/self").exists():
            with contextlib.suppress(OSError):
                if found.stat().st_uid == os.getuid():
                    shutil.rmtree(found, ignore_errors=True)
