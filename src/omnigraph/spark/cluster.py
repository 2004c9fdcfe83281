"""Owns the cluster of a load: which executors can reach the graph, what must be installed there,
and where rows wait between stages."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import omnigraph
from omnigraph.engine.load.spool import Spool
from omnigraph.engine.session import Session
from omnigraph.errors import EngineMissing, InvalidArgument, OmnigraphError
from omnigraph.spark.session import SHARED, is_local, master_of
from omnigraph.spark.tasks import run_tasks
from omnigraph.store.forks import at_own_exit
from omnigraph.store.intents import ELSEWHERE
from omnigraph.store.jobs import SPOOL
from omnigraph.store.roots import Root

_TEMPORARY = "omnigraph-spark-"
_DATA_SOURCE = "pyspark_omnigraph"


class Probed(msgspec.Struct, frozen=True):
    """The versions on an executor."""

    omnigraph: str
    pylance: str


def is_remote(spark: Any) -> bool:
    """Whether executors may be elsewhere than on this machine."""
    return _is_connect(spark) or not is_local(master_of(spark))


def require_reachable(spark: Any, root: Root) -> None:
    if root.directory is None or not is_remote(spark):
        return
    if str(spark.conf.get(SHARED, "false")).lower() != "true":
        raise InvalidArgument(
            f"The graph {root.uri} is a directory of this machine, and the executors of "
            f"{_where(spark)} may be on others.",
            help=f"If they all see this directory, say so: {SHARED}=true. Else use a root on an "
            "object store, or a local master.",
        )


def _where(spark: Any) -> str:
    return "Spark Connect" if _is_connect(spark) else master_of(spark)


def _is_connect(spark: Any) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def require_executors(spark: Any) -> None:
    """Before anything is read, reports what executors elsewhere lack. If that is only this package,
    it is sent to them. Its dependencies must be installed there."""
    if not is_remote(spark):
        return
    try:
        (_, found), *_ = run_tasks(spark, _probe, [0], Probed)
    except EngineMissing as error:
        if not _ship(spark):
            raise
        try:
            (_, found), *_ = run_tasks(spark, _probe, [0], Probed)
        except EngineMissing:
            raise EngineMissing(
                f"The executors of {_where(spark)} lack pylance, or another package that "
                "omnigraph rests on.",
                help="Install omnigraph, in this version, where the executors run.",
            ) from error
    if found.omnigraph != omnigraph.__version__:
        raise EngineMissing(
            f"The executors of {_where(spark)} have omnigraph {found.omnigraph}, and this is "
            f"{omnigraph.__version__}.",
            help="Install this version where the executors run.",
        )


def _probe(_: int) -> Iterator[Probed]:
    from importlib.metadata import version

    import omnigraph

    # Not there: a PackageNotFoundError. Imported, it could not be forked from.
    yield Probed(omnigraph.__version__, version("pylance"))


def _ship(spark: Any) -> bool:
    """Sends this package to executors. Returns whether it was sent now and not before."""
    shipped = "spark.omnigraph.shipped"
    if spark.conf.get(shipped, "") == omnigraph.__version__:
        return False
    packages = [Path(omnigraph.__file__).parent]
    packages += [packages[0].with_name(_DATA_SOURCE)]
    directory = Path(tempfile.mkdtemp(prefix="omnigraph-package-"))
    try:
        archive = directory / f"omnigraph-{omnigraph.__version__}.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            for package in packages:
                for path in sorted(package.rglob("*")):
                    if path.is_file() and path.suffix != ".pyc":
                        file.write(path, path.relative_to(package.parent))
        if _is_connect(spark):
            spark.addArtifacts(str(archive), pyfile=True)
        else:
            spark.sparkContext.addPyFile(str(archive))
    finally:
        if _is_connect(spark):  # a separate driver serves the file for as long as it runs
            shutil.rmtree(directory, ignore_errors=True)
        else:
            at_own_exit(shutil.rmtree, directory, ignore_errors=True)
    spark.conf.set(shipped, omnigraph.__version__)
    return True


@contextlib.contextmanager
def passing_spool(session: Session, operation: str, *, remote: bool) -> Iterator[Spool]:
    """A spool beside the graph, where cleanup finds what a crash leaves, or in the temporary
    directory if the graph is remote and the executors are local."""
    if remote or session.root.directory is not None:
        spool = Spool(session.root, f"{SPOOL}{operation}", session.settings)
        try:
            yield spool
        finally:
            with contextlib.suppress(OmnigraphError):  # cleanup takes what is left
                spool.remove()
        return
    _sweep_temporary()
    directory = Path(tempfile.mkdtemp(prefix=f"{_TEMPORARY}{os.getpid()}-"))
    try:
        yield Spool(Root(str(directory), directory), ELSEWHERE, session.settings)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _sweep_temporary() -> None:
    """Deletes what killed drivers have left."""
    for found in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*-*"):
        owner = found.name.removeprefix(_TEMPORARY).split("-", 1)[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists() and Path("/proc/self").exists():
            with contextlib.suppress(OSError):
                if found.stat().st_uid == os.getuid():
                    shutil.rmtree(found, ignore_errors=True)
